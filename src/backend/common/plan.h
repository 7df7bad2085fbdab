/*!
 * \file plan.h
 * \brief The launch plan of a compiled function, parsed from its JSON form.
 *
 * The schema is documented in tilelang/engine/launch_plan.py.
 */
#ifndef TILELANG_BACKEND_COMMON_PLAN_H_
#define TILELANG_BACKEND_COMMON_PLAN_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "dtype.h"
#include "expr.h"

namespace tilelang {
namespace runtime {

enum class ParamKind : uint8_t { kTensor, kScalar, kPointer };

struct ParamSpec {
  std::string name;
  ParamKind kind = ParamKind::kTensor;
  DeclaredType dtype;
  DLDeviceType device = kDLCPU;
  std::vector<IntExpr> shape;
  std::optional<std::vector<IntExpr>> strides;  // nullopt: compact row-major
  bool accepts_none = false;
  bool is_output = false;
  int64_t align = 1;  // bytes; of the address of a tensor
  int symbol = -1;  // scalars: the symbol this argument is the value of
};

struct CheckSpec {
  IntExpr cond;
  std::string message;
};

struct WorkspaceSpec {
  DeclaredType dtype;
  std::vector<IntExpr> shape;
};

struct ArgSpec {
  enum class Source : uint8_t { kParam, kSymbol, kWorkspace } source;
  int index;
};

struct KernelSpec {
  std::string entry;
  std::array<IntExpr, 3> grid;
  std::array<IntExpr, 3> block;
  std::vector<ArgSpec> args;
  int64_t scratch_bytes = 0;
  IntExpr dyn_smem;
  std::array<int64_t, 3> cluster{1, 1, 1};
  std::vector<std::string> flags;
};

struct Plan {
  std::string name;
  std::vector<std::string> symbols;
  std::vector<ParamSpec> params;
  std::vector<CheckSpec> checks;
  std::vector<WorkspaceSpec> workspaces;
  std::vector<KernelSpec> kernels;
  std::vector<int> returns;
  bool returns_list = false;
  int num_inputs = 0;

  /*! \brief Parse; throws ValueError naming the field when the text is malformed. */
  static Plan FromJson(const std::string& text);

  /*! \brief `f(A: float32[M, 4], n: int32)`, for messages. */
  std::string Signature() const;
  /*! \brief `[M, 4]`. */
  std::string FormatShape(const std::vector<IntExpr>& shape) const;
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_PLAN_H_
