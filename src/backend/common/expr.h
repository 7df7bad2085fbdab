/*!
 * \file expr.h
 * \brief Integer expressions of a launch plan, evaluated on the host at every call.
 */
#ifndef TILELANG_BACKEND_COMMON_EXPR_H_
#define TILELANG_BACKEND_COMMON_EXPR_H_

#include <tvm/ffi/any.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilelang {
namespace runtime {

enum class ExprOp : uint8_t {
  kConst,
  kSymbol,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kShl,
  kShr,
  kAnd,
  kOr,
  kXor,
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kLogicalAnd,
  kLogicalOr,
  kNot,
  kSelect,
};

/*!
 * \brief An expression over the 64-bit values of the launch symbols.
 *
 * Arithmetic wraps; division and remainder floor; `and`, `or` and `select` evaluate only what
 * they need. Children precede their parent in the node list, so the root is the last node.
 */
class IntExpr {
 public:
  /*! \brief How the value depends on one symbol. */
  enum class Degree : uint8_t { kFree, kLinear, kNonLinear };

  explicit IntExpr(int64_t value = 0);
  /*! \brief Parse the JSON form; throws ValueError when it is malformed. */
  static IntExpr FromJson(const tvm::ffi::Any& json, int num_symbols);

  int64_t Eval(const int64_t* symbols) const {
    const Node& root = nodes_.back();
    if (root.op == ExprOp::kConst) return root.value;
    if (root.op == ExprOp::kSymbol) return symbols[root.value];
    return EvalNode(root, symbols);
  }

  bool IsConst() const { return nodes_.back().op == ExprOp::kConst; }
  bool IsSymbol() const { return nodes_.back().op == ExprOp::kSymbol; }
  Degree DegreeIn(int symbol) const;
  /*! \brief Append the indices of all symbols that occur, without repeats. */
  void CollectSymbols(std::vector<int>* out) const;
  std::string ToString(const std::vector<std::string>& names) const;

 private:
  struct Node {
    ExprOp op;
    int32_t child[3];
    int64_t value;  // constant, or symbol index
  };

  int32_t Append(const tvm::ffi::Any& json, int num_symbols, int depth);
  int64_t EvalNode(const Node& node, const int64_t* symbols) const;
  Degree DegreeOf(const Node& node, int symbol) const;
  std::string Format(const Node& node, const std::vector<std::string>& names, int outer) const;

  std::vector<Node> nodes_;
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_EXPR_H_
