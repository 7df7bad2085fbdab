/*!
 * \file outputs.h
 * \brief Allocation of the tensors a call returns.
 */
#ifndef TILELANG_BACKEND_COMMON_OUTPUTS_H_
#define TILELANG_BACKEND_COMMON_OUTPUTS_H_

#include <tvm/ffi/any.h>

#include <vector>

#include "binder.h"

namespace tilelang {
namespace runtime {

/*!
 * \brief The output tensors of one call.
 *
 * They come from the allocator of the framework whose tensors were passed, or from torch when the
 * call has no tensor argument. Tensors that are never taken are freed.
 */
class Outputs {
 public:
  /*! \brief Allocate every output of the plan and store their addresses in the frame. */
  Outputs(const Binder& binder, Frame* frame);
  ~Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  /*! \brief What the call returns: None, one tensor, or a list (an FFI array outside Python). */
  tvm::ffi::Any Take();

 private:
  void Allocate(int param, Frame* frame);

  const Plan& plan_;
  const Binder& binder_;
  DLPackManagedTensorAllocator allocator_ = nullptr;
  bool to_python_ = false;
  std::vector<DLManagedTensorVersioned*> tensors_;  // by parameter; null for inputs
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_OUTPUTS_H_
