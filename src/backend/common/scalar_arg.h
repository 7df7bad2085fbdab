/*!
 * \file scalar_arg.h
 * \brief Conversion of scalar and pointer arguments to kernel slots.
 */
#ifndef TILELANG_BACKEND_COMMON_SCALAR_ARG_H_
#define TILELANG_BACKEND_COMMON_SCALAR_ARG_H_

#include <tvm/ffi/any.h>

#include <cstdint>

#include "plan.h"

namespace tilelang {
namespace runtime {

/*! \brief Slot of scalar parameter `param`: extended integer, 0/1, or float bits (low bytes). */
uint64_t ScalarSlot(const Plan& plan, int param, const tvm::ffi::AnyView& arg);

/*! \brief Slot of pointer parameter `param`: an address, from a pointer, int, tensor or None. */
uint64_t PointerSlot(const Plan& plan, int param, const tvm::ffi::AnyView& arg);

/*! \brief The tensor in an argument, or null. */
const DLTensor* AsTensor(const tvm::ffi::AnyView& arg);

/*! \brief Address of element 0. */
inline uint64_t AddressOf(const DLTensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
}

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_SCALAR_ARG_H_
