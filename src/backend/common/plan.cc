#include "plan.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/string.h>

#include <algorithm>

#include "errors.h"

namespace tilelang {
namespace runtime {
namespace {

namespace ffi = tvm::ffi;

using Object = ffi::Map<ffi::Any, ffi::Any>;
using List = ffi::Array<ffi::Any>;

[[noreturn]] void Malformed(const std::string& field) {
  Fail("ValueError", "malformed launch plan: field '" + field + "'");
}

ffi::Any Field(const Object& object, const char* name) {
  auto value = object.Get(ffi::String(name));
  if (!value) Malformed(name);
  return *value;
}

template <typename T>
T As(const ffi::Any& value, const char* name) {
  auto typed = value.as<T>();
  if (!typed) Malformed(name);
  return *typed;
}

template <typename T>
T Get(const Object& object, const char* name) {
  return As<T>(Field(object, name), name);
}

std::string GetString(const Object& object, const char* name) {
  return Get<ffi::String>(object, name);
}

int Index(const ffi::Any& value, size_t limit, const char* name) {
  auto index = As<int64_t>(value, name);
  if (index < 0 || index >= static_cast<int64_t>(limit)) Malformed(name);
  return static_cast<int>(index);
}

std::vector<IntExpr> Exprs(const ffi::Any& value, int num_symbols, const char* name) {
  std::vector<IntExpr> out;
  for (const ffi::Any& item : As<List>(value, name)) {
    out.push_back(IntExpr::FromJson(item, num_symbols));
  }
  return out;
}

std::array<IntExpr, 3> ThreeExprs(const Object& object, int num_symbols, const char* name) {
  std::vector<IntExpr> exprs = Exprs(Field(object, name), num_symbols, name);
  if (exprs.size() != 3) Malformed(name);
  return {exprs[0], exprs[1], exprs[2]};
}

ParamKind ParseKind(const std::string& kind) {
  if (kind == "tensor") return ParamKind::kTensor;
  if (kind == "scalar") return ParamKind::kScalar;
  if (kind == "pointer") return ParamKind::kPointer;
  Malformed("kind");
}

/*! \brief Field `align`, a power of two; by default what an element needs, which is 1 on a CPU. */
int64_t ParseAlign(const Object& json, DLDataType type, DLDeviceType device) {
  constexpr int64_t kLargest = int64_t{1} << 20;
  int64_t align = 1;
  if (device != kDLCPU) align = std::clamp(type.bits / 8, 1, 8);
  if (auto value = json.Get(ffi::String("align"))) align = As<int64_t>(*value, "align");
  if (align < 1 || align > kLargest || (align & (align - 1)) != 0) Malformed("align");
  return align;
}

ParamSpec ParseParam(const Object& json, int num_symbols) {
  ParamSpec param;
  param.name = GetString(json, "name");
  param.kind = ParseKind(GetString(json, "kind"));
  param.dtype = param.kind == ParamKind::kPointer ? DeclaredType{{}, "pointer", 1}
                                                  : ParseType(GetString(json, "dtype"));
  param.device = ParseDevice(GetString(json, "device"));
  param.shape = Exprs(Field(json, "shape"), num_symbols, "shape");
  ffi::Any strides = Field(json, "strides");
  if (strides != nullptr) {
    param.strides = Exprs(strides, num_symbols, "strides");
    if (param.strides->size() != param.shape.size()) Malformed("strides");
  }
  param.align = ParseAlign(json, param.dtype.type, param.device);
  param.accepts_none = GetString(json, "access") == "none";
  param.is_output = GetString(json, "role") == "out";
  if (auto symbol = json.Get(ffi::String("symbol"))) {
    param.symbol = Index(*symbol, num_symbols, "symbol");
  }
  return param;
}

ArgSpec ParseArg(const Object& json, const Plan& plan) {
  if (auto index = json.Get(ffi::String("param"))) {
    return {ArgSpec::Source::kParam, Index(*index, plan.params.size(), "args")};
  }
  if (auto index = json.Get(ffi::String("symbol"))) {
    return {ArgSpec::Source::kSymbol, Index(*index, plan.symbols.size(), "args")};
  }
  return {ArgSpec::Source::kWorkspace,
          Index(Field(json, "workspace"), plan.workspaces.size(), "args")};
}

KernelSpec ParseKernel(const Object& json, const Plan& plan) {
  int num_symbols = static_cast<int>(plan.symbols.size());
  KernelSpec kernel;
  kernel.entry = GetString(json, "entry");
  kernel.grid = ThreeExprs(json, num_symbols, "grid");
  kernel.block = ThreeExprs(json, num_symbols, "block");
  for (const ffi::Any& arg : Get<List>(json, "args")) {
    kernel.args.push_back(ParseArg(As<Object>(arg, "args"), plan));
  }
  kernel.scratch_bytes = Get<int64_t>(json, "scratch_bytes");
  if (kernel.scratch_bytes < 0) Malformed("scratch_bytes");
  kernel.dyn_smem = IntExpr::FromJson(Field(json, "dyn_smem"), num_symbols);
  List cluster = Get<List>(json, "cluster");
  if (cluster.size() != 3) Malformed("cluster");
  for (int i = 0; i < 3; ++i) kernel.cluster[i] = As<int64_t>(cluster[i], "cluster");
  for (const ffi::Any& flag : Get<List>(json, "flags")) {
    kernel.flags.push_back(As<ffi::String>(flag, "flags"));
  }
  return kernel;
}

}  // namespace

Plan Plan::FromJson(const std::string& text) {
  ffi::String error;
  ffi::Any root = ffi::json::Parse(text, &error);
  if (!error.empty()) Fail("ValueError", "malformed launch plan: " + std::string(error));
  Object json = As<Object>(root, "plan");
  if (Get<int64_t>(json, "version") != 2) Malformed("version");
  Plan plan;
  plan.name = GetString(json, "name");
  for (const ffi::Any& symbol : Get<List>(json, "symbols")) {
    plan.symbols.push_back(As<ffi::String>(symbol, "symbols"));
  }
  int num_symbols = static_cast<int>(plan.symbols.size());
  for (const ffi::Any& param : Get<List>(json, "params")) {
    plan.params.push_back(ParseParam(As<Object>(param, "params"), num_symbols));
    plan.num_inputs += !plan.params.back().is_output;
  }
  for (const ffi::Any& item : Get<List>(json, "checks")) {
    Object check = As<Object>(item, "checks");
    plan.checks.push_back(
        {IntExpr::FromJson(Field(check, "cond"), num_symbols), GetString(check, "message")});
  }
  for (const ffi::Any& item : Get<List>(json, "workspaces")) {
    Object workspace = As<Object>(item, "workspaces");
    plan.workspaces.push_back({ParseType(GetString(workspace, "dtype")),
                               Exprs(Field(workspace, "shape"), num_symbols, "shape")});
  }
  for (const ffi::Any& kernel : Get<List>(json, "kernels")) {
    plan.kernels.push_back(ParseKernel(As<Object>(kernel, "kernels"), plan));
  }
  for (const ffi::Any& item : Get<List>(json, "returns")) {
    plan.returns.push_back(Index(item, plan.params.size(), "returns"));
    if (!plan.params[plan.returns.back()].is_output) Malformed("returns");
  }
  plan.returns_list = Get<bool>(json, "returns_list");
  if (plan.returns.size() > 1 && !plan.returns_list) Malformed("returns_list");
  return plan;
}

std::string Plan::FormatShape(const std::vector<IntExpr>& shape) const {
  std::string text = "[";
  for (const IntExpr& extent : shape) {
    if (text.size() > 1) text += ", ";
    text += extent.ToString(symbols);
  }
  return text + "]";
}

std::string Plan::Signature() const {
  std::string text = name + "(";
  bool first = true;
  for (const ParamSpec& param : params) {
    if (param.is_output) continue;
    if (!first) text += ", ";
    first = false;
    text += param.name + ": " + param.dtype.name;
    if (param.kind == ParamKind::kTensor) text += FormatShape(param.shape);
  }
  return text + ")";
}

}  // namespace runtime
}  // namespace tilelang
