/*!
 * \file binder.h
 * \brief Binds the arguments of a call to a launch plan: checks, symbols, kernel slots.
 */
#ifndef TILELANG_BACKEND_COMMON_BINDER_H_
#define TILELANG_BACKEND_COMMON_BINDER_H_

#include <tvm/ffi/any.h>

#include <string>
#include <vector>

#include "plain_args.h"
#include "plan.h"
#include "small_array.h"

namespace tilelang {
namespace runtime {

struct SolveStep;

/*! \brief The arguments of one call after binding; lives on the caller's stack. */
struct Frame {
  explicit Frame(const Plan& plan)
      : symbols(plan.symbols.size()),
        values(plan.params.size()),
        tensors(plan.params.size()),
        workspaces(plan.workspaces.size()) {}

  /*! \brief Value of every symbol. */
  SmallArray<int64_t, 16> symbols;
  /*! \brief Kernel slot of every parameter: address of element 0, or scalar bits. */
  SmallArray<uint64_t, 16> values;
  /*! \brief Tensor of every parameter; null for scalars, None and outputs. */
  SmallArray<const DLTensor*, 16> tensors;
  /*! \brief Address of every workspace, filled in by the launcher. */
  SmallArray<uint64_t, 4> workspaces;
  /*! \brief Where the call runs: device of the first tensor, else the declared one, id 0. */
  DLDevice device{kDLCPU, 0};
  /*! \brief Whether a tensor told the device; otherwise the launcher takes the current one. */
  bool device_known = false;
};

/*!
 * \brief Checks and binds arguments; immutable after construction, so calls may run concurrently.
 *
 * Kinds, dtypes, ranks and devices of all arguments are checked before any shape, so that a
 * TypeError wins over a ValueError. Nothing is allocated or written unless the call is valid.
 */
class Binder {
 public:
  /*! \brief Throws ValueError if a symbol that is needed cannot be bound from any parameter. */
  explicit Binder(Plan plan);
  ~Binder();

  const Plan& plan() const { return plan_; }

  /*! \brief Bind the input arguments; throws ArgumentTypeError or ArgumentValueError. */
  void Bind(const tvm::ffi::AnyView* args, int num_args, Frame* frame) const;

  /*! \brief Extents of output `param`, in declared elements; throws if one is negative. */
  void EvalOutputShape(int param, const Frame& frame, int64_t* shape) const;

  /*! \brief Size of workspace `index` in bytes; throws if an extent is negative. */
  int64_t EvalWorkspaceBytes(int index, const Frame& frame) const;

  /*!
   * \brief Evaluate the grid along x, y and z; throws if an extent is negative.
   * \return The number of blocks.
   */
  int64_t EvalGrid(const KernelSpec& kernel, const Frame& frame, int64_t* grid) const;

  /*! \brief Write the argument slots of a kernel. */
  void FillSlots(const KernelSpec& kernel, const Frame& frame, uint64_t* slots) const;

 private:
  [[noreturn]] void FailCount(int num_args) const;
  void BindAny(const tvm::ffi::AnyView* args, int num_args, Frame* frame) const;
  bool BindTensor(int index, const tvm::ffi::AnyView& arg, Frame* frame) const;
  void BindScalar(int index, const tvm::ffi::AnyView& arg, Frame* frame) const;
  void FindDevice(Frame* frame) const;
  void SolveWithout(Frame* frame) const;
  void CheckTensor(int index, const Frame& frame) const;
  void CheckStrides(int index, const Frame& frame) const;
  [[noreturn]] void FailAlignment(int index, const Frame& frame) const;
  void CheckAssertions(const Frame& frame) const;

  Plan plan_;
  std::vector<int> inputs_;             // parameter index of each argument
  DLDevice default_device_{kDLCPU, 0};  // of a call whose tensors do not tell
  std::vector<SolveStep> steps_;        // valid when no argument is None
  PlainArgs plain_;
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_BINDER_H_
