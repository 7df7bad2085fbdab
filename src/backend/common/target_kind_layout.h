/*!
 * \file target_kind_layout.h
 * \brief The part of TVM's target-kind registry that has no public API, and checks that the TVM in
 * this process really looks like this.
 */
#ifndef TILELANG_BACKEND_COMMON_TARGET_KIND_LAYOUT_H_
#define TILELANG_BACKEND_COMMON_TARGET_KIND_LAYOUT_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tilelang {
namespace target {

using Config = tvm::ffi::Map<tvm::ffi::String, tvm::ffi::Any>;
using Canonicalizer = tvm::ffi::TypedFunction<Config(Config)>;

/*! \brief One option a target of a kind may have. */
struct KindOption {
  tvm::ffi::String key;
  tvm::ffi::String type_name;
  /*! \brief Checks a value and converts it to its stored form. */
  tvm::ffi::TypedFunction<tvm::ffi::Any(tvm::ffi::Any)> convert;
  bool has_default = false;
  bool default_is_factory = false;
  tvm::ffi::Any default_value;
};

struct KindSchema {
  std::vector<KindOption> options;
  std::unordered_map<std::string, size_t> index_of;
  Canonicalizer canonicalizer{nullptr};
  bool strict = true;
};

/*! \brief Object of type "target.TargetKind". */
struct KindRecord : tvm::ffi::Object {
  tvm::ffi::String name;
  int default_device_type;
  tvm::ffi::Array<tvm::ffi::String> default_keys;
  Canonicalizer canonicalizer{nullptr};
  KindSchema schema;
  uint32_t registry_index;
};

/*! \brief What `TargetKindRegEntry::RegisterOrGet` returns a reference to. */
struct RegistryEntry {
  tvm::ffi::ObjectPtr<tvm::ffi::Object> kind;
  tvm::ffi::String name;
};

/*!
 * \brief Access to the kinds of the TVM in this process.
 *
 * Everything is checked against what TVM tells about itself through its public functions before
 * it is used; memory of unknown layout is read through the kernel, so a wrong guess cannot fault.
 */
class KindRegistry {
 public:
  /*! \brief Check the registry; `problem()` says why it cannot be used. */
  KindRegistry();

  bool usable() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

  /*! \brief The record of a kind whose layout was checked, or null and a new `problem()`. */
  KindRecord* Find(const std::string& kind);

  /*! \brief A new kind without options, or null and a new `problem()`. */
  KindRecord* Create(const std::string& kind);

  /*! \brief True if TVM lists the kind. */
  static bool Exists(const std::string& kind);

 private:
  using RegisterOrGet = RegistryEntry& (*)(const tvm::ffi::String&);

  KindRecord* Locate(const std::string& kind);
  bool Reject(std::string why);
  bool CheckReflection();
  bool CheckOptions(const std::string& kind, const KindRecord* record);

  RegisterOrGet register_or_get_ = nullptr;
  std::string problem_;
};

}  // namespace target
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_TARGET_KIND_LAYOUT_H_
