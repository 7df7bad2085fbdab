#include "expr.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <limits>

#include "errors.h"

namespace tilelang {
namespace runtime {
namespace {

namespace ffi = tvm::ffi;

struct OpInfo {
  const char* name;
  ExprOp op;
  int arity;
  int precedence;  // 0: printed as a call
};

constexpr OpInfo kOps[] = {
    {"+", ExprOp::kAdd, 2, 9},         {"-", ExprOp::kSub, 2, 9},
    {"*", ExprOp::kMul, 2, 10},        {"//", ExprOp::kFloorDiv, 2, 10},
    {"%", ExprOp::kFloorMod, 2, 10},   {"min", ExprOp::kMin, 2, 0},
    {"max", ExprOp::kMax, 2, 0},       {"<<", ExprOp::kShl, 2, 8},
    {">>", ExprOp::kShr, 2, 8},        {"&", ExprOp::kAnd, 2, 7},
    {"|", ExprOp::kOr, 2, 5},          {"^", ExprOp::kXor, 2, 6},
    {"<", ExprOp::kLt, 2, 4},          {"<=", ExprOp::kLe, 2, 4},
    {">", ExprOp::kGt, 2, 4},          {">=", ExprOp::kGe, 2, 4},
    {"==", ExprOp::kEq, 2, 4},         {"!=", ExprOp::kNe, 2, 4},
    {"and", ExprOp::kLogicalAnd, 2, 2}, {"or", ExprOp::kLogicalOr, 2, 1},
    {"not", ExprOp::kNot, 1, 3},       {"select", ExprOp::kSelect, 3, 0},
};

// Deeper expressions are refused: evaluation and printing recurse.
constexpr int kMaxDepth = 1000;

const OpInfo* FindOp(const std::string& name) {
  for (const OpInfo& info : kOps) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

const OpInfo& InfoOf(ExprOp op) {
  return *std::find_if(std::begin(kOps), std::end(kOps),
                       [op](const OpInfo& info) { return info.op == op; });
}

int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0) Fail("ValueError", "division by zero while evaluating a launch expression");
  if (b == -1) return WrapSub(0, a);
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t FloorMod(int64_t a, int64_t b) { return WrapSub(a, WrapMul(FloorDiv(a, b), b)); }

int64_t ShiftLeft(int64_t a, int64_t b) {
  return b < 0 || b >= 64 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t ShiftRight(int64_t a, int64_t b) {
  if (b < 0 || b >= 64) return a < 0 ? -1 : 0;
  return a >> b;
}

int64_t Apply(ExprOp op, int64_t a, int64_t b) {
  switch (op) {
    case ExprOp::kAdd: return WrapAdd(a, b);
    case ExprOp::kSub: return WrapSub(a, b);
    case ExprOp::kMul: return WrapMul(a, b);
    case ExprOp::kFloorDiv: return FloorDiv(a, b);
    case ExprOp::kFloorMod: return FloorMod(a, b);
    case ExprOp::kMin: return std::min(a, b);
    case ExprOp::kMax: return std::max(a, b);
    case ExprOp::kShl: return ShiftLeft(a, b);
    case ExprOp::kShr: return ShiftRight(a, b);
    case ExprOp::kAnd: return a & b;
    case ExprOp::kOr: return a | b;
    case ExprOp::kXor: return a ^ b;
    case ExprOp::kLt: return a < b;
    case ExprOp::kLe: return a <= b;
    case ExprOp::kGt: return a > b;
    case ExprOp::kGe: return a >= b;
    case ExprOp::kEq: return a == b;
    case ExprOp::kNe: return a != b;
    default: break;
  }
  Fail("InternalError", "unexpected operator in a launch expression");
}

}  // namespace

IntExpr::IntExpr(int64_t value) { nodes_.push_back({ExprOp::kConst, {-1, -1, -1}, value}); }

IntExpr IntExpr::FromJson(const ffi::Any& json, int num_symbols) {
  IntExpr expr;
  expr.nodes_.clear();
  expr.Append(json, num_symbols, 0);
  return expr;
}

int32_t IntExpr::Append(const ffi::Any& json, int num_symbols, int depth) {
  if (depth > kMaxDepth) Fail("ValueError", "a launch expression is nested too deeply");
  Node node{ExprOp::kConst, {-1, -1, -1}, 0};
  if (auto value = json.as<int64_t>()) {
    node.value = *value;
  } else if (auto object = json.as<ffi::Map<ffi::Any, ffi::Any>>()) {
    auto index = object->Get(ffi::String("sym"));
    auto value_of = index ? index->as<int64_t>() : std::nullopt;
    if (!value_of || *value_of < 0 || *value_of >= num_symbols) {
      Fail("ValueError", "a launch expression names an unknown symbol");
    }
    node.op = ExprOp::kSymbol;
    node.value = *value_of;
  } else {
    auto list = json.as<ffi::Array<ffi::Any>>();
    auto name = list && !list->empty() ? (*list)[0].as<ffi::String>() : std::nullopt;
    const OpInfo* info = name ? FindOp(*name) : nullptr;
    if (info == nullptr || static_cast<int>(list->size()) != info->arity + 1) {
      Fail("ValueError", "malformed launch expression");
    }
    node.op = info->op;
    for (int i = 0; i < info->arity; ++i) {
      node.child[i] = Append((*list)[i + 1], num_symbols, depth + 1);
    }
  }
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size()) - 1;
}

int64_t IntExpr::EvalNode(const Node& node, const int64_t* symbols) const {
  auto child = [&](int i) { return EvalNode(nodes_[node.child[i]], symbols); };
  switch (node.op) {
    case ExprOp::kConst: return node.value;
    case ExprOp::kSymbol: return symbols[node.value];
    case ExprOp::kNot: return !child(0);
    case ExprOp::kLogicalAnd: return child(0) && child(1);
    case ExprOp::kLogicalOr: return child(0) || child(1);
    case ExprOp::kSelect: return child(0) ? child(1) : child(2);
    default: {
      int64_t a = child(0);
      return Apply(node.op, a, child(1));
    }
  }
}

IntExpr::Degree IntExpr::DegreeIn(int symbol) const { return DegreeOf(nodes_.back(), symbol); }

IntExpr::Degree IntExpr::DegreeOf(const Node& node, int symbol) const {
  if (node.op == ExprOp::kConst) return Degree::kFree;
  if (node.op == ExprOp::kSymbol) return node.value == symbol ? Degree::kLinear : Degree::kFree;
  Degree highest = Degree::kFree;
  int dependent = 0;
  for (int32_t index : node.child) {
    if (index < 0) continue;
    Degree degree = DegreeOf(nodes_[index], symbol);
    highest = std::max(highest, degree);
    dependent += degree != Degree::kFree;
  }
  bool additive = node.op == ExprOp::kAdd || node.op == ExprOp::kSub;
  bool scaled = node.op == ExprOp::kMul && dependent == 1;
  if (highest == Degree::kFree || additive || scaled) return highest;
  return Degree::kNonLinear;
}

void IntExpr::CollectSymbols(std::vector<int>* out) const {
  for (const Node& node : nodes_) {
    int symbol = static_cast<int>(node.value);
    if (node.op == ExprOp::kSymbol && std::find(out->begin(), out->end(), symbol) == out->end()) {
      out->push_back(symbol);
    }
  }
}

std::string IntExpr::ToString(const std::vector<std::string>& names) const {
  return Format(nodes_.back(), names, 0);
}

std::string IntExpr::Format(const Node& node, const std::vector<std::string>& names,
                            int outer) const {
  if (node.op == ExprOp::kConst) return std::to_string(node.value);
  if (node.op == ExprOp::kSymbol) return names[node.value];
  const OpInfo& info = InfoOf(node.op);
  auto child = [&](int i, int level) { return Format(nodes_[node.child[i]], names, level); };
  std::string text;
  if (info.precedence == 0) {
    text = std::string(info.name) + "(";
    for (int i = 0; i < info.arity; ++i) text += (i ? ", " : "") + child(i, 0);
    return text + ")";
  }
  text = info.arity == 1 ? std::string("not ") + child(0, info.precedence)
                         : child(0, info.precedence) + " " + info.name + " " +
                               child(1, info.precedence + 1);
  return info.precedence < outer ? "(" + text + ")" : text;
}

}  // namespace runtime
}  // namespace tilelang
