#include "argument_error.h"

#include <tvm/ffi/c_api.h>

#include "errors.h"
#include "python_api.h"

namespace tilelang {
namespace runtime {
namespace {

using tvm::ffi::TypeIndex;

std::string Prefix(const Plan& plan, int param) {
  int position = 0;
  for (int i = 0; i < param; ++i) position += !plan.params[i].is_output;
  return plan.name + ": argument '" + plan.params[param].name + "' (position " +
         std::to_string(position) + "): ";
}

std::string Context(const Plan& plan, const int64_t* symbols) {
  std::string text = "\n  in " + plan.Signature();
  if (symbols != nullptr && !plan.symbols.empty()) {
    text += "\n  with " + FormatSymbols(plan, symbols);
  }
  return text;
}

}  // namespace

void FailArgumentType(const Plan& plan, int param, const std::string& problem) {
  Fail(kArgumentTypeError, Prefix(plan, param) + problem + Context(plan, nullptr));
}

void FailArgumentValue(const Plan& plan, int param, const std::string& problem,
                       const int64_t* symbols) {
  Fail(kArgumentValueError, Prefix(plan, param) + problem + Context(plan, symbols));
}

void FailCall(const Plan& plan, const std::string& problem, const int64_t* symbols) {
  Fail(kArgumentValueError, plan.name + ": " + problem + Context(plan, symbols));
}

std::string FormatSymbols(const Plan& plan, const int64_t* symbols) {
  std::string text;
  for (size_t i = 0; i < plan.symbols.size(); ++i) {
    if (i > 0) text += ", ";
    text += plan.symbols[i] + " = " + std::to_string(symbols[i]);
  }
  return text;
}

std::string Expectation(const Plan& plan, const ParamSpec& param) {
  if (param.kind != ParamKind::kTensor) return param.dtype.name;
  return param.dtype.name + " tensor " + plan.FormatShape(param.shape);
}

std::string Describe(const tvm::ffi::AnyView& arg) {
  switch (arg.type_index()) {
    case TypeIndex::kTVMFFINone: return "None";
    case TypeIndex::kTVMFFIInt:
    case TypeIndex::kTVMFFIBigInt: return "int";
    case TypeIndex::kTVMFFIBool: return "bool";
    case TypeIndex::kTVMFFIFloat: return "float";
    case TypeIndex::kTVMFFIOpaquePtr: return "pointer";
    case TypeIndex::kTVMFFIDataType: return "dtype";
    case TypeIndex::kTVMFFIDevice: return "device";
    case TypeIndex::kTVMFFITensor:
    case TypeIndex::kTVMFFIDLTensorPtr: return "tensor";
    case TypeIndex::kTVMFFISmallStr:
    case TypeIndex::kTVMFFIStr:
    case TypeIndex::kTVMFFIRawStr: return "str";
    case TypeIndex::kTVMFFIArray:
    case TypeIndex::kTVMFFIList: return "list or tuple";
    case TypeIndex::kTVMFFIMap:
    case TypeIndex::kTVMFFIDict: return "dict";
    case TypeIndex::kTVMFFIFunction: return "function";
    case TypeIndex::kTVMFFIOpaquePyObject: return PythonTypeName(arg);
    default: return arg.GetTypeKey();
  }
}

}  // namespace runtime
}  // namespace tilelang
