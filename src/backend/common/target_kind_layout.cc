#include "target_kind_layout.h"

#include <dlfcn.h>
#include <tvm/ffi/reflection/accessor.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "memory_probe.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && \
    defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define TILELANG_KNOWN_ABI 1
#else
#define TILELANG_KNOWN_ABI 0
#endif

// KindRecord has a base class; its offsets are the same in every compiler of the ABIs above.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace tilelang {
namespace target {
namespace {

namespace ffi = tvm::ffi;

constexpr const char* kRegisterOrGet =
    "_ZN3tvm18TargetKindRegEntry13RegisterOrGetERKNS_3ffi6StringE";
constexpr size_t kMaxOptions = 200;

using OptionTypes = ffi::Map<ffi::String, ffi::String>;

std::optional<OptionTypes> ListOptions(const std::string& kind) {
  auto list = ffi::Function::GetGlobal("target.ListTargetKindOptionsFromName");
  if (!list) return std::nullopt;
  try {
    return (*list)(kind).cast<OptionTypes>();
  } catch (const ffi::Error&) {
    return std::nullopt;
  }
}

/*! \brief Decode a string cell of unknown origin. */
bool ReadString(MemoryProbe* probe, const void* cell, std::string* out) {
  TVMFFIAny raw;
  if (!probe->Read(cell, &raw, sizeof(raw))) return false;
  if (raw.type_index == kTVMFFISmallStr) {
    if (raw.small_str_len > sizeof(raw.v_bytes)) return false;
    out->assign(raw.v_bytes, raw.small_str_len);
    return true;
  }
  if (raw.type_index != kTVMFFIStr) return false;
  struct {
    TVMFFIObject header;
    TVMFFIByteArray bytes;
  } object;
  if (!probe->Read(raw.v_obj, &object, sizeof(object))) return false;
  if (object.header.type_index != kTVMFFIStr || object.bytes.size > 4096) return false;
  out->resize(object.bytes.size);
  return probe->Read(object.bytes.data, &(*out)[0], out->size());
}

/*! \brief libstdc++'s std::vector and std::unordered_map, as far as they are checked. */
struct RawVector {
  const char* begin;
  const char* end;
  const char* capacity;
};
struct RawHashMap {
  void* buckets;
  size_t bucket_count;
  void* first;
  size_t element_count;
  float max_load_factor;
};

bool FieldIs(const TVMFFITypeInfo* info, const char* name, size_t offset, size_t size) {
  for (int i = 0; i < info->num_fields; ++i) {
    const TVMFFIFieldInfo& field = info->fields[i];
    if (std::string(field.name.data, field.name.size) == name) {
      return field.offset == static_cast<int64_t>(offset) &&
             field.size == static_cast<int64_t>(size);
    }
  }
  return false;
}

int32_t KindTypeIndex() {
  const char* key = "target.TargetKind";
  TVMFFIByteArray text{key, std::strlen(key)};
  int32_t index = -1;
  if (TVMFFITypeKeyToIndex(&text, &index) == 0) return index;
  TVMFFIObjectHandle ignored = nullptr;
  TVMFFIErrorMoveFromRaised(&ignored);
  if (ignored != nullptr) TVMFFIObjectDecRef(ignored);
  return -1;
}

}  // namespace

KindRegistry::KindRegistry() {
  if (!TILELANG_KNOWN_ABI) {
    Reject("the layout of TVM's records is not known on this platform");
    return;
  }
  void* library = dlopen("libtvm_compiler.so", RTLD_NOLOAD | RTLD_LAZY);
  void* symbol = library != nullptr ? dlsym(library, kRegisterOrGet) : nullptr;
  if (symbol == nullptr) {
    Reject("this TVM does not export its target-kind registry");
    return;
  }
  register_or_get_ = reinterpret_cast<RegisterOrGet>(symbol);
  if (!CheckReflection()) return;
  for (const char* kind : {"llvm", "cuda", "rocm"}) {
    if (Find(kind) == nullptr) return;
  }
}

bool KindRegistry::Reject(std::string why) {
  problem_ = std::move(why);
  return false;
}

bool KindRegistry::Exists(const std::string& kind) {
  auto list = ffi::Function::GetGlobal("target.ListTargetKinds");
  if (!list) return false;
  for (const ffi::String& name : (*list)().cast<ffi::Array<ffi::String>>()) {
    if (name == kind) return true;
  }
  return false;
}

/*! \brief Size and public fields of the record, as TVM registered them. */
bool KindRegistry::CheckReflection() {
  int32_t index = KindTypeIndex();
  const TVMFFITypeInfo* info = index >= 0 ? TVMFFIGetTypeInfo(index) : nullptr;
  if (info == nullptr) return Reject("this TVM has no target kinds");
  bool size_known = info->metadata != nullptr && info->metadata->total_size > 0;
  bool same = FieldIs(info, "name", offsetof(KindRecord, name), sizeof(ffi::String)) &&
              FieldIs(info, "default_device_type", offsetof(KindRecord, default_device_type),
                      sizeof(int)) &&
              FieldIs(info, "default_keys", offsetof(KindRecord, default_keys), sizeof(void*)) &&
              (!size_known || info->metadata->total_size == sizeof(KindRecord));
  return same || Reject("target kinds of this TVM have another layout");
}

/*! \brief Find the record of a kind, checking only that it is one. */
KindRecord* KindRegistry::Locate(const std::string& kind) {
  MemoryProbe probe;
  const RegistryEntry* entry = &register_or_get_(ffi::String(kind));
  char* object = nullptr;
  std::string name;
  alignas(KindRecord) char copy[sizeof(KindRecord)];
  bool ok = probe.Read(&entry->kind, &object, sizeof(object)) &&
            ReadString(&probe, &entry->name, &name) && name == kind &&
            probe.Read(object, copy, sizeof(copy)) &&
            reinterpret_cast<TVMFFIObject*>(copy)->type_index == KindTypeIndex();
  if (ok) return reinterpret_cast<KindRecord*>(object);
  Reject("the registry entry of kind '" + kind + "' is not understood");
  return nullptr;
}

KindRecord* KindRegistry::Find(const std::string& kind) {
  KindRecord* record = Exists(kind) ? Locate(kind) : nullptr;
  if (record == nullptr) {
    if (usable()) Reject("this TVM has no kind '" + kind + "'");
    return nullptr;
  }
  return CheckOptions(kind, record) ? record : nullptr;
}

/*! \brief Compare the decoded option table with the list TVM gives of it. */
bool KindRegistry::CheckOptions(const std::string& kind, const KindRecord* record) {
  MemoryProbe probe;
  std::string name;
  auto listed = ListOptions(kind);
  auto* base = reinterpret_cast<const char*>(record);
  RawVector options;
  RawHashMap index;
  bool ok = listed && ReadString(&probe, base + offsetof(KindRecord, name), &name) &&
            name == kind &&
            probe.Read(base + offsetof(KindRecord, schema.options), &options, sizeof(options)) &&
            probe.Read(base + offsetof(KindRecord, schema.index_of), &index, sizeof(index));
  size_t bytes = ok ? static_cast<size_t>(options.end - options.begin) : 0;
  size_t count = bytes / sizeof(KindOption);
  ok = ok && bytes % sizeof(KindOption) == 0 && count == listed->size() && count > 0 &&
       count <= kMaxOptions && options.end <= options.capacity &&
       index.element_count == count && index.max_load_factor == 1.0f &&
       index.bucket_count >= count && index.bucket_count < 100 * kMaxOptions;
  for (size_t i = 0; ok && i < count; ++i) {
    const char* option = options.begin + i * sizeof(KindOption);
    std::string key;
    std::string type_name;
    ok = ReadString(&probe, option + offsetof(KindOption, key), &key) &&
         ReadString(&probe, option + offsetof(KindOption, type_name), &type_name);
    auto type = ok ? listed->Get(ffi::String(key)) : std::nullopt;
    ok = ok && type && *type == type_name;
  }
  if (!ok) return Reject("the option table of kind '" + kind + "' is not understood");
  // From here on the containers may be used as what they are.
  for (size_t i = 0; i < count; ++i) {
    auto found = record->schema.index_of.find(record->schema.options[i].key);
    if (found == record->schema.index_of.end() || found->second != i) {
      return Reject("the option index of kind '" + kind + "' is not understood");
    }
  }
  return true;
}

KindRecord* KindRegistry::Create(const std::string& kind) {
  if (Exists(kind)) {
    Reject("kind '" + kind + "' exists already");
    return nullptr;
  }
  KindRecord* record = Locate(kind);
  if (record == nullptr) return nullptr;
  if (!record->schema.options.empty() || !record->schema.index_of.empty()) {
    Reject("a new kind is not empty");
    return nullptr;
  }
  return record;
}

}  // namespace target
}  // namespace tilelang
