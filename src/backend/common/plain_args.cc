#include "plain_args.h"

#include "argument_error.h"
#include "binder.h"
#include "scalar_arg.h"

namespace tilelang {
namespace runtime {

PlainArgs::PlainArgs(const Plan& plan, const std::vector<int>& inputs) {
  for (int index : inputs) {
    const ParamSpec& param = plan.params[index];
    args_.push_back({index, param.kind == ParamKind::kTensor, param.strides.has_value(),
                     param.dtype.type, param.device, static_cast<int>(param.shape.size()),
                     static_cast<uint64_t>(param.align) - 1, expected_.size()});
    Append(param.shape);
    if (param.strides) Append(*param.strides);
  }
}

void PlainArgs::Append(const std::vector<IntExpr>& exprs) {
  using Form = Expected::Form;
  for (const IntExpr& expr : exprs) {
    std::vector<int> symbols;
    expr.CollectSymbols(&symbols);
    if (expr.IsConst()) {
      expected_.push_back({Form::kConst, expr.Eval(nullptr)});
    } else if (expr.IsSymbol()) {
      expected_.push_back({Form::kSymbol, symbols.front()});
    } else {
      expected_.push_back({Form::kExpr, 0});
    }
  }
}

bool PlainArgs::Bind(const Plan& plan, const tvm::ffi::AnyView* args, Frame* frame) const {
  for (size_t i = 0; i < args_.size(); ++i) {
    const Arg& arg = args_[i];
    if (!arg.is_tensor) {
      bool pointer = plan.params[arg.param].kind == ParamKind::kPointer;
      frame->values[arg.param] = pointer ? PointerSlot(plan, arg.param, args[i])
                                         : ScalarSlot(plan, arg.param, args[i]);
      continue;
    }
    const DLTensor* tensor = AsTensor(args[i]);
    if (tensor == nullptr || !SameType(arg.type, tensor->dtype) ||
        tensor->device.device_type != arg.device || tensor->ndim != arg.ndim) {
      return false;
    }
    if (arg.device != kDLCPU) {
      if (frame->device_known && tensor->device.device_id != frame->device.device_id) return false;
      frame->device = tensor->device;
      frame->device_known = true;
    }
    frame->tensors[arg.param] = tensor;
    frame->values[arg.param] = AddressOf(*tensor);
  }
  return true;
}

bool PlainArgs::Fit(const Plan& plan, const Frame& frame) const {
  const int64_t* symbols = frame.symbols.data();
  for (const Arg& arg : args_) {
    if (!arg.is_tensor) continue;
    const ParamSpec& param = plan.params[arg.param];
    const DLTensor& tensor = *frame.tensors[arg.param];
    const Expected* expected = expected_.data() + arg.expected;
    int64_t compact = 1;
    bool fits = (frame.values[arg.param] & arg.misaligned) == 0;
    for (int dim = arg.ndim - 1; dim >= 0; --dim) {
      int64_t extent = tensor.shape[dim];
      fits &= extent == expected[dim].Eval(param.shape[dim], symbols);
      if (tensor.strides == nullptr || arg.strided) continue;
      fits &= extent == 1 || tensor.strides[dim] == compact;
      compact *= extent;
    }
    if (arg.strided) {
      if (tensor.strides == nullptr) return false;
      for (int dim = 0; dim < arg.ndim; ++dim) {
        const Expected& stride = expected[arg.ndim + dim];
        fits &= tensor.strides[dim] == stride.Eval((*param.strides)[dim], symbols);
      }
    }
    if (!fits) return false;
  }
  return true;
}

}  // namespace runtime
}  // namespace tilelang
