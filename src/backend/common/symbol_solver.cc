#include "symbol_solver.h"

#include <algorithm>
#include <string>

#include "argument_error.h"
#include "errors.h"
#include "tensor_arg.h"

namespace tilelang {
namespace runtime {
namespace {

/*! \brief Preference of a source of symbol values; lower is better. */
int CostOf(const Plan& plan, const SolveStep& step) {
  if (step.source == SolveStep::Source::kScalar) return 0;
  if (step.source == SolveStep::Source::kStride) return step.direct ? 4 : 5;
  const ParamSpec& param = plan.params[step.param];
  bool packed = param.dtype.pack > 1 && step.dim + 1 == static_cast<int>(param.shape.size());
  if (packed) return 3;
  return step.direct ? 1 : 2;
}

/*! \brief The step that binds the only unknown symbol of `expr`, if it is linear in it. */
bool MakeStep(const IntExpr& expr, const std::vector<bool>& bound, SolveStep* step) {
  std::vector<int> symbols;
  expr.CollectSymbols(&symbols);
  int unknown = -1;
  for (int symbol : symbols) {
    if (bound[symbol]) continue;
    if (unknown >= 0) return false;
    unknown = symbol;
  }
  if (unknown < 0 || expr.DegreeIn(unknown) != IntExpr::Degree::kLinear) return false;
  step->symbol = unknown;
  step->direct = expr.IsSymbol();
  return true;
}

class StepFinder {
 public:
  StepFinder(const Plan& plan, const std::vector<bool>& present)
      : plan_(plan), present_(present), bound_(plan.symbols.size(), false) {}

  std::vector<SolveStep> Run() {
    std::vector<SolveStep> steps;
    while (FindBest()) {
      bound_[best_.symbol] = true;
      steps.push_back(best_);
    }
    return steps;
  }

  const std::vector<bool>& bound() const { return bound_; }

 private:
  bool FindBest() {
    found_ = false;
    for (int i = 0; i < static_cast<int>(plan_.params.size()); ++i) {
      const ParamSpec& param = plan_.params[i];
      if (!present_[i]) continue;
      if (param.kind == ParamKind::kScalar && param.symbol >= 0 && !bound_[param.symbol]) {
        Offer({SolveStep::Source::kScalar, true, i, 0, param.symbol});
      }
      OfferAll(i, param.shape, SolveStep::Source::kExtent);
      if (param.strides) OfferAll(i, *param.strides, SolveStep::Source::kStride);
    }
    return found_;
  }

  void OfferAll(int param, const std::vector<IntExpr>& exprs, SolveStep::Source source) {
    for (int dim = 0; dim < static_cast<int>(exprs.size()); ++dim) {
      SolveStep step{source, false, param, dim, -1};
      if (MakeStep(exprs[dim], bound_, &step)) Offer(step);
    }
  }

  void Offer(const SolveStep& step) {
    if (found_ && CostOf(plan_, best_) <= CostOf(plan_, step)) return;
    best_ = step;
    found_ = true;
  }

  const Plan& plan_;
  const std::vector<bool>& present_;
  std::vector<bool> bound_;
  SolveStep best_{};
  bool found_ = false;
};

/*! \brief Symbols whose values a call needs when the parameters in `present` are given. */
std::vector<int> NeededSymbols(const Plan& plan, const std::vector<bool>& present) {
  std::vector<int> needed;
  auto collect = [&](const auto& exprs) {
    for (const IntExpr& expr : exprs) expr.CollectSymbols(&needed);
  };
  for (size_t i = 0; i < plan.params.size(); ++i) {
    if (!present[i] && !plan.params[i].is_output) continue;
    collect(plan.params[i].shape);
    if (plan.params[i].strides) collect(*plan.params[i].strides);
  }
  for (const CheckSpec& check : plan.checks) check.cond.CollectSymbols(&needed);
  for (const WorkspaceSpec& workspace : plan.workspaces) collect(workspace.shape);
  for (const KernelSpec& kernel : plan.kernels) {
    collect(kernel.grid);
    collect(kernel.block);
    kernel.dyn_smem.CollectSymbols(&needed);
    for (const ArgSpec& arg : kernel.args) {
      if (arg.source == ArgSpec::Source::kSymbol) needed.push_back(arg.index);
    }
  }
  return needed;
}

int64_t ActualValue(const Plan& plan, const SolveStep& step, const Frame& frame) {
  if (step.source == SolveStep::Source::kScalar) {
    return static_cast<int64_t>(frame.values[step.param]);
  }
  TensorArg tensor(plan.params[step.param], *frame.tensors[step.param]);
  return step.source == SolveStep::Source::kExtent ? tensor.Extent(step.dim)
                                                   : tensor.Stride(step.dim);
}

[[noreturn]] void NoSolution(const Plan& plan, const SolveStep& step, int64_t actual) {
  const ParamSpec& param = plan.params[step.param];
  bool extent = step.source == SolveStep::Source::kExtent;
  const IntExpr& expr = extent ? param.shape[step.dim] : (*param.strides)[step.dim];
  FailArgumentValue(plan, step.param,
                    std::string(extent ? "extent " : "stride ") + std::to_string(actual) +
                        " of dimension " + std::to_string(step.dim) + " is not of the form " +
                        expr.ToString(plan.symbols) + " for any integer " +
                        plan.symbols[step.symbol] + (extent ? " >= 0" : ""),
                    nullptr);
}

/*! \brief Solve `a * x + b == actual`, reading a and b off two evaluations of the expression. */
int64_t SolveLinear(const Plan& plan, const SolveStep& step, int64_t actual, Frame* frame) {
  const ParamSpec& param = plan.params[step.param];
  bool extent = step.source == SolveStep::Source::kExtent;
  const IntExpr& expr = extent ? param.shape[step.dim] : (*param.strides)[step.dim];
  int64_t* symbols = frame->symbols.data();
  symbols[step.symbol] = 0;
  int64_t offset = expr.Eval(symbols);
  symbols[step.symbol] = 1;
  int64_t factor = expr.Eval(symbols) - offset;
  int64_t rest = actual - offset;
  if (factor == 0) {
    // The symbol is free here (it is multiplied by an extent of zero); the check that follows
    // decides whether the rest agrees.
    return 0;
  }
  int64_t value = factor == -1 ? -rest : rest / factor;
  bool free_stride =
      !extent && TensorArg(param, *frame->tensors[step.param]).StrideIsFree(step.dim);
  if (free_stride) return value;
  if (factor != -1 && rest % factor != 0) NoSolution(plan, step, actual);
  if (extent && value < 0) NoSolution(plan, step, actual);
  return value;
}

}  // namespace

std::vector<SolveStep> OrderSteps(const Plan& plan, const std::vector<bool>& present) {
  StepFinder finder(plan, present);
  std::vector<SolveStep> steps = finder.Run();
  for (int symbol : NeededSymbols(plan, present)) {
    if (finder.bound()[symbol]) continue;
    Fail("ValueError", plan.name + ": the value of symbol '" + plan.symbols[symbol] +
                           "' cannot be found from the arguments\n  in " + plan.Signature());
  }
  return steps;
}

void SolveSymbols(const Plan& plan, const std::vector<SolveStep>& steps, Frame* frame) {
  for (const SolveStep& step : steps) {
    int64_t actual = ActualValue(plan, step, *frame);
    frame->symbols[step.symbol] =
        step.direct ? actual : SolveLinear(plan, step, actual, frame);
  }
}

}  // namespace runtime
}  // namespace tilelang
