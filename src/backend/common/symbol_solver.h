/*!
 * \file symbol_solver.h
 * \brief Finds the values of a plan's symbols from the arguments of a call.
 */
#ifndef TILELANG_BACKEND_COMMON_SYMBOL_SOLVER_H_
#define TILELANG_BACKEND_COMMON_SYMBOL_SOLVER_H_

#include <vector>

#include "binder.h"

namespace tilelang {
namespace runtime {

/*! \brief Take the value of `symbol` from an extent, a stride or a scalar argument. */
struct SolveStep {
  enum class Source : uint8_t { kScalar, kExtent, kStride };
  Source source;
  bool direct;  // the expression is the bare symbol
  int param;
  int dim;
  int symbol;
};

/*!
 * \brief Order in which symbols can be bound when the parameters in `present` are available.
 *
 * Scalars come first, then extents that are a bare symbol, extents linear in one unknown symbol,
 * packed extents (whose value is only known up to the packing), and strides.
 *
 * \throws ValueError naming the first symbol that is needed but cannot be bound.
 */
std::vector<SolveStep> OrderSteps(const Plan& plan, const std::vector<bool>& present);

/*! \brief Run the steps; throws ArgumentValueError when an extent has no integer solution. */
void SolveSymbols(const Plan& plan, const std::vector<SolveStep>& steps, Frame* frame);

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_SYMBOL_SOLVER_H_
