#include "binder.h"

#include <utility>

#include "argument_error.h"
#include "errors.h"
#include "scalar_arg.h"
#include "symbol_solver.h"
#include "tensor_arg.h"

namespace tilelang {
namespace runtime {
namespace {

using tvm::ffi::AnyView;
using tvm::ffi::TypeIndex;

std::string FormatDevice(DLDevice device) {
  std::string name = DeviceName(device.device_type);
  return device.device_type == kDLCPU ? name : name + ":" + std::to_string(device.device_id);
}

std::string Evaluated(const std::vector<IntExpr>& exprs, const Frame& frame) {
  std::string text = "[";
  for (size_t i = 0; i < exprs.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(exprs[i].Eval(frame.symbols.data()));
  }
  return text + "]";
}

/*! \brief "[M, 4] = [8, 4]", or only "[8, 4]" when nothing is symbolic. */
std::string Expected(const Plan& plan, const std::vector<IntExpr>& exprs, const Frame& frame) {
  std::string symbolic = plan.FormatShape(exprs);
  std::string numbers = Evaluated(exprs, frame);
  return symbolic == numbers ? numbers : symbolic + " = " + numbers;
}

/*! \brief "rank 2 [M, 4]"; a tensor that holds lanes has one more dimension. */
std::string RankExpectation(const Plan& plan, const ParamSpec& param, const DLTensor& tensor) {
  std::string shape = plan.FormatShape(param.shape);
  if (!HoldsLanes(param.dtype, tensor.dtype)) {
    return "rank " + std::to_string(param.shape.size()) + " " + shape;
  }
  return "rank " + std::to_string(param.shape.size() + 1) + ": " + shape + " vectors, their " +
         std::to_string(param.dtype.type.lanes) + " lanes as last dimension";
}

/*! \brief Parameter index of each argument. */
std::vector<int> InputsOf(const Plan& plan) {
  std::vector<int> inputs;
  for (int i = 0; i < static_cast<int>(plan.params.size()); ++i) {
    if (!plan.params[i].is_output) inputs.push_back(i);
  }
  return inputs;
}

/*! \brief Device 0 of the first tensor that is declared on an accelerator. */
DLDevice DeclaredDevice(const Plan& plan) {
  for (const ParamSpec& param : plan.params) {
    if (param.kind == ParamKind::kTensor && param.device != kDLCPU) return {param.device, 0};
  }
  return {kDLCPU, 0};
}

}  // namespace

Binder::Binder(Plan plan)
    : plan_(std::move(plan)),
      inputs_(InputsOf(plan_)),
      default_device_(DeclaredDevice(plan_)),
      plain_(plan_, inputs_) {
  std::vector<bool> present(plan_.params.size());
  for (int index : inputs_) present[index] = true;
  steps_ = OrderSteps(plan_, present);
}

Binder::~Binder() = default;

void Binder::Bind(const AnyView* args, int num_args, Frame* frame) const {
  if (num_args != static_cast<int>(inputs_.size())) FailCount(num_args);
  if (plain_.Bind(plan_, args, frame)) {
    if (!frame->device_known) frame->device = default_device_;
    SolveSymbols(plan_, steps_, frame);
    if (plain_.Fit(plan_, *frame)) {
      CheckAssertions(*frame);
      return;
    }
  }
  BindAny(args, num_args, frame);
}

/*! \brief Bind arguments of every kind that is allowed; the checks come in the order promised. */
void Binder::BindAny(const AnyView* args, int num_args, Frame* frame) const {
  bool complete = true;
  for (int i = 0; i < num_args; ++i) {
    int index = inputs_[i];
    if (plan_.params[index].kind == ParamKind::kTensor) {
      complete &= BindTensor(index, args[i], frame);
    } else {
      BindScalar(index, args[i], frame);
    }
  }
  FindDevice(frame);
  if (complete) {
    SolveSymbols(plan_, steps_, frame);
  } else {
    SolveWithout(frame);
  }
  for (int index : inputs_) {
    if (frame->tensors[index] != nullptr) CheckTensor(index, *frame);
  }
  CheckAssertions(*frame);
}

void Binder::FailCount(int num_args) const {
  std::string text = plan_.name + ": expected " + std::to_string(inputs_.size()) +
                     (inputs_.size() == 1 ? " argument, got " : " arguments, got ") +
                     std::to_string(num_args);
  if (num_args < static_cast<int>(inputs_.size())) {
    text += "; '" + plan_.params[inputs_[num_args]].name + "' is missing";
  }
  Fail(kArgumentTypeError, text + "\n  in " + plan_.Signature());
}

/*! \return False if the argument is a legal None. */
bool Binder::BindTensor(int index, const AnyView& arg, Frame* frame) const {
  const ParamSpec& param = plan_.params[index];
  const DLTensor* tensor = AsTensor(arg);
  if (tensor == nullptr) {
    if (param.accepts_none && arg.type_index() == TypeIndex::kTVMFFINone) return false;
    FailArgumentType(plan_, index,
                     "expected " + Expectation(plan_, param) + ", got " + Describe(arg));
  }
  if (!SameType(param.dtype.type, tensor->dtype) &&
      MatchType(param.dtype, tensor->dtype, tensor->device.device_type) == TypeMatch::kNo) {
    FailArgumentType(plan_, index, "expected dtype " + param.dtype.name + ", got " +
                                       TypeName(tensor->dtype));
  }
  if (!DeviceMatches(param.device, tensor->device.device_type)) {
    FailArgumentValue(plan_, index,
                      std::string("expected a tensor on ") + DeviceName(param.device) +
                          ", got one on " + FormatDevice(tensor->device),
                      nullptr);
  }
  TensorArg seen(param, *tensor);
  if (seen.ndim() != static_cast<int>(param.shape.size()) || !seen.LanesFit()) {
    FailArgumentValue(plan_, index,
                      "expected " + RankExpectation(plan_, param, *tensor) + ", got rank " +
                          std::to_string(tensor->ndim) + " " + seen.FormatShape() +
                          (seen.LanesFit() ? "" : ", strides " + seen.FormatStrides()),
                      nullptr);
  }
  frame->tensors[index] = tensor;
  frame->values[index] = AddressOf(*tensor);
  return true;
}

void Binder::BindScalar(int index, const AnyView& arg, Frame* frame) const {
  bool pointer = plan_.params[index].kind == ParamKind::kPointer;
  frame->values[index] =
      pointer ? PointerSlot(plan_, index, arg) : ScalarSlot(plan_, index, arg);
}

/*! \brief All tensors declared on an accelerator must be on one device of that kind. */
void Binder::FindDevice(Frame* frame) const {
  int first = -1;
  frame->device = default_device_;
  frame->device_known = false;
  for (int index : inputs_) {
    const DLTensor* tensor = frame->tensors[index];
    if (tensor == nullptr || plan_.params[index].device == kDLCPU) continue;
    if (first < 0) {
      first = index;
      frame->device = {plan_.params[index].device, tensor->device.device_id};
      frame->device_known = true;
    } else if (tensor->device.device_id != frame->device.device_id) {
      FailArgumentValue(plan_, index,
                        "expected a tensor on " + FormatDevice(frame->device) + " like '" +
                            plan_.params[first].name + "', got one on " +
                            FormatDevice(tensor->device),
                        nullptr);
    }
  }
}

/*! \brief Solve when some tensors are None: their shapes cannot define symbols. */
void Binder::SolveWithout(Frame* frame) const {
  std::vector<bool> present(plan_.params.size());
  for (int index : inputs_) {
    bool tensor = plan_.params[index].kind == ParamKind::kTensor;
    present[index] = !tensor || frame->tensors[index] != nullptr;
  }
  SolveSymbols(plan_, OrderSteps(plan_, present), frame);
}

void Binder::CheckTensor(int index, const Frame& frame) const {
  const ParamSpec& param = plan_.params[index];
  TensorArg tensor(param, *frame.tensors[index]);
  for (int dim = 0; dim < tensor.ndim(); ++dim) {
    if (tensor.ExtentIs(dim, param.shape[dim].Eval(frame.symbols.data()))) continue;
    FailArgumentValue(plan_, index,
                      "expected shape " + Expected(plan_, param.shape, frame) + ", got " +
                          tensor.FormatShape(),
                      frame.symbols.data());
  }
  if (param.strides) {
    CheckStrides(index, frame);
  } else if (!tensor.IsCompact()) {
    FailArgumentValue(plan_, index,
                      "expected a contiguous tensor, got strides " + tensor.FormatStrides() +
                          " for shape " + tensor.FormatShape() +
                          "; pass a contiguous copy (.contiguous()), or declare the strides with "
                          "T.StridedTensor",
                      frame.symbols.data());
  }
  if (frame.values[index] % static_cast<uint64_t>(param.align) != 0 && !tensor.IsEmpty()) {
    FailAlignment(index, frame);
  }
}

void Binder::FailAlignment(int index, const Frame& frame) const {
  auto align = static_cast<uint64_t>(plan_.params[index].align);
  FailArgumentValue(plan_, index,
                    "expected memory aligned to " + std::to_string(align) +
                        " bytes, got an address " + std::to_string(frame.values[index] % align) +
                        " bytes past such a boundary; a view that starts inside another tensor "
                        "can be passed as a copy (.clone())",
                    nullptr);
}

void Binder::CheckStrides(int index, const Frame& frame) const {
  const ParamSpec& param = plan_.params[index];
  TensorArg tensor(param, *frame.tensors[index]);
  for (int dim = 0; dim < tensor.ndim(); ++dim) {
    if (tensor.StrideIsFree(dim)) continue;
    if (tensor.Stride(dim) == (*param.strides)[dim].Eval(frame.symbols.data())) continue;
    FailArgumentValue(plan_, index,
                      "expected strides " + Expected(plan_, *param.strides, frame) + ", got " +
                          tensor.FormatStrides() + " for shape " + tensor.FormatShape(),
                      frame.symbols.data());
  }
}

void Binder::CheckAssertions(const Frame& frame) const {
  for (const CheckSpec& check : plan_.checks) {
    if (check.cond.Eval(frame.symbols.data()) == 0) {
      FailCall(plan_, check.message, frame.symbols.data());
    }
  }
}

void Binder::EvalOutputShape(int param, const Frame& frame, int64_t* shape) const {
  const ParamSpec& spec = plan_.params[param];
  for (size_t dim = 0; dim < spec.shape.size(); ++dim) {
    shape[dim] = spec.shape[dim].Eval(frame.symbols.data());
    if (shape[dim] >= 0) continue;
    FailCall(plan_,
             "output '" + spec.name + "' would have shape " + Expected(plan_, spec.shape, frame),
             frame.symbols.data());
  }
}

int64_t Binder::EvalWorkspaceBytes(int index, const Frame& frame) const {
  const WorkspaceSpec& spec = plan_.workspaces[index];
  int64_t bits = int64_t{spec.dtype.type.bits} * spec.dtype.type.lanes;
  bool fits = true;
  for (const IntExpr& expr : spec.shape) {
    int64_t extent = expr.Eval(frame.symbols.data());
    fits &= extent >= 0 && !__builtin_mul_overflow(bits, extent, &bits);
  }
  if (!fits || bits > INT64_MAX - 7) {
    FailCall(plan_, "a workspace would have shape " + Expected(plan_, spec.shape, frame),
             frame.symbols.data());
  }
  return (bits + 7) / 8;
}

int64_t Binder::EvalGrid(const KernelSpec& kernel, const Frame& frame, int64_t* grid) const {
  int64_t total = 1;
  bool valid = true;
  for (int i = 0; i < 3; ++i) {
    grid[i] = kernel.grid[i].Eval(frame.symbols.data());
    valid &= grid[i] >= 0 && !__builtin_mul_overflow(total, grid[i], &total);
  }
  if (!valid) {
    std::vector<IntExpr> exprs(kernel.grid.begin(), kernel.grid.end());
    FailCall(plan_, "cannot launch a grid of " + Expected(plan_, exprs, frame) + " blocks",
             frame.symbols.data());
  }
  return total;
}

void Binder::FillSlots(const KernelSpec& kernel, const Frame& frame, uint64_t* slots) const {
  for (const ArgSpec& arg : kernel.args) {
    switch (arg.source) {
      case ArgSpec::Source::kParam:
        *slots++ = frame.values[arg.index];
        break;
      case ArgSpec::Source::kSymbol:
        *slots++ = static_cast<uint64_t>(frame.symbols[arg.index]);
        break;
      case ArgSpec::Source::kWorkspace:
        *slots++ = frame.workspaces[arg.index];
        break;
    }
  }
}

}  // namespace runtime
}  // namespace tilelang
