/*!
 * \file errors.h
 * \brief Raising errors that reach Python as one short exception.
 */
#ifndef TILELANG_BACKEND_COMMON_ERRORS_H_
#define TILELANG_BACKEND_COMMON_ERRORS_H_

#include <tvm/ffi/error.h>

#include <string>
#include <utility>

namespace tilelang {
namespace runtime {

/*! \brief Call-time argument of the wrong kind, dtype or count (a Python TypeError). */
inline constexpr const char* kArgumentTypeError = "ArgumentTypeError";
/*! \brief Call-time argument of the wrong rank, shape, strides or device (a ValueError). */
inline constexpr const char* kArgumentValueError = "ArgumentValueError";

/*! \brief Throw without a native backtrace: the Python frames are what a user needs. */
[[noreturn]] inline void Fail(const char* kind, std::string message) {
  throw tvm::ffi::Error(kind, std::move(message), std::string());
}

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_ERRORS_H_
