/*!
 * \file target_kinds.cc
 * \brief Registers target kind `hip` and option `code` of kind `cuda` with TVM.
 */
#include <tvm/ffi/reflection/registry.h>

#include <mutex>
#include <string>

#include "errors.h"
#include "target_kind_layout.h"

namespace tilelang {
namespace target {
namespace {

namespace ffi = tvm::ffi;

using Status = ffi::Map<ffi::String, ffi::String>;

constexpr const char* kRegistered = "registered";
constexpr int64_t kHipMaxThreads = 1024;  // per block, on every AMD GPU
constexpr int64_t kHipLdsBytes = 65536;

void AppendOption(KindRecord* record, KindOption option) {
  record->schema.index_of.emplace(option.key, record->schema.options.size());
  record->schema.options.push_back(std::move(option));
}

/*! \brief One architecture or a list of them. */
ffi::Any CheckCode(const ffi::Any& value) {
  if (value.as<ffi::String>()) return value;
  if (auto list = value.try_cast<ffi::Array<ffi::String>>()) return *list;
  runtime::Fail("TypeError", "option 'code' of target kind 'cuda' takes a string or a list of "
                             "strings, got " + value.GetTypeKey());
}

std::string AddCudaCode(KindRegistry* registry) {
  KindRecord* cuda = registry->Find("cuda");
  if (cuda == nullptr) return registry->problem();
  if (cuda->schema.index_of.count("code") > 0) return kRegistered;
  KindOption option;
  option.key = "code";
  option.type_name = "str | Array<str>";
  option.convert = ffi::TypedFunction<ffi::Any(ffi::Any)>(CheckCode);
  AppendOption(cuda, std::move(option));
  return kRegistered;
}

/*! \brief RDNA (gfx10 and later) runs waves of 32 lanes, CDNA and GCN waves of 64. */
int64_t WaveSize(const std::string& mcpu) {
  bool rdna = mcpu.rfind("gfx10", 0) == 0 || mcpu.rfind("gfx11", 0) == 0 ||
              mcpu.rfind("gfx12", 0) == 0;
  return rdna ? 32 : 64;
}

Config CanonicalizeHip(Config config) {
  auto mcpu = config.Get("mcpu");
  auto name = mcpu ? mcpu->as<ffi::String>() : std::nullopt;
  if (!config.Get("thread_warp_size")) {
    config.Set("thread_warp_size", WaveSize(name ? std::string(*name) : std::string()));
  }
  return config;
}

void SetDefault(KindRecord* record, const char* key, ffi::Any value) {
  auto found = record->schema.index_of.find(key);
  if (found == record->schema.index_of.end()) return;
  KindOption& option = record->schema.options[found->second];
  option.has_default = true;
  option.default_is_factory = false;
  option.default_value = std::move(value);
}

void ClearDefault(KindRecord* record, const char* key) {
  auto found = record->schema.index_of.find(key);
  if (found == record->schema.index_of.end()) return;
  KindOption& option = record->schema.options[found->second];
  option.has_default = false;
  option.default_is_factory = false;
  option.default_value = nullptr;
}

std::string AddHip(KindRegistry* registry) {
  if (KindRegistry::Exists("hip")) return kRegistered;
  KindRecord* rocm = registry->Find("rocm");
  KindRecord* hip = rocm != nullptr ? registry->Create("hip") : nullptr;
  if (hip == nullptr) return registry->problem();
  hip->name = "hip";
  hip->default_device_type = kDLROCM;
  hip->default_keys = {"hip", "rocm", "gpu"};
  hip->schema.options = rocm->schema.options;
  hip->schema.index_of = rocm->schema.index_of;
  hip->schema.strict = rocm->schema.strict;
  hip->schema.canonicalizer = Canonicalizer(CanonicalizeHip);
  SetDefault(hip, "max_threads_per_block", kHipMaxThreads);
  SetDefault(hip, "max_num_threads", kHipMaxThreads);
  SetDefault(hip, "max_shared_memory_per_block", kHipLdsBytes);
  ClearDefault(hip, "thread_warp_size");
  return kRegistered;
}

/*!
 * \brief Register what this TVM allows; never throws.
 * \return For "hip" and "code": "registered", or the reason why not.
 */
Status RegisterKinds() {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::string hip;
  std::string code;
  try {
    KindRegistry registry;
    hip = registry.usable() ? AddHip(&registry) : registry.problem();
    code = registry.usable() ? AddCudaCode(&registry) : registry.problem();
  } catch (const std::exception& error) {
    if (hip.empty()) hip = error.what();
    if (code.empty()) code = error.what();
  }
  return {{"hip", hip}, {"code", code}};
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tl.target.register_kinds", RegisterKinds);
}

}  // namespace target
}  // namespace tilelang
