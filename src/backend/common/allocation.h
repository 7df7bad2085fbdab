/*!
 * \file allocation.h
 * \brief Tensors and workspaces from a framework's allocator.
 */
#ifndef TILELANG_BACKEND_COMMON_ALLOCATION_H_
#define TILELANG_BACKEND_COMMON_ALLOCATION_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/tensor.h>

#include <string>
#include <vector>

#include "binder.h"

namespace tilelang {
namespace runtime {

/*!
 * \brief The allocator of the framework whose tensors were passed, else torch's.
 *
 * It knows the framework's current stream, so memory may be given back while kernels that use it
 * are still queued there, and a captured graph owns what was allocated for it.
 * Throws RuntimeError, saying what `what` needs, if there is neither.
 */
DLPackManagedTensorAllocator FindAllocator(const Plan& plan, const char* what);

/*!
 * \brief Allocate through a framework; throws its own kind of error with its first line of text.
 * \param what Completes "cannot allocate ...".
 * \param fallback Another dtype to try if the framework does not know that of the prototype.
 */
DLManagedTensorVersioned* AllocateTensor(DLPackManagedTensorAllocator allocator,
                                         DLTensor* prototype, const Plan& plan,
                                         const std::string& what,
                                         const DLDataType* fallback = nullptr);

/*! \brief Take over an allocated tensor, also on failure. */
tvm::ffi::Tensor ToFfiTensor(DLManagedTensorVersioned* managed);

/*! \brief Allocate every workspace of the plan on the frame's device and store the addresses. */
std::vector<tvm::ffi::Tensor> AllocateWorkspaces(const Binder& binder, Frame* frame);

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_ALLOCATION_H_
