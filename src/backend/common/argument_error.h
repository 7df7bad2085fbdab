/*!
 * \file argument_error.h
 * \brief Messages for wrong arguments: the argument, what was expected, what came.
 */
#ifndef TILELANG_BACKEND_COMMON_ARGUMENT_ERROR_H_
#define TILELANG_BACKEND_COMMON_ARGUMENT_ERROR_H_

#include <tvm/ffi/any.h>

#include <string>

#include "plan.h"

namespace tilelang {
namespace runtime {

/*! \brief Throw ArgumentTypeError: "f: argument 'A' (position 0): <problem>" and the signature. */
[[noreturn]] void FailArgumentType(const Plan& plan, int param, const std::string& problem);

/*!
 * \brief Throw ArgumentValueError, with the value of every symbol if `symbols` is not null.
 */
[[noreturn]] void FailArgumentValue(const Plan& plan, int param, const std::string& problem,
                                    const int64_t* symbols);

/*! \brief Throw a ValueError about the call as a whole, with the value of every symbol. */
[[noreturn]] void FailCall(const Plan& plan, const std::string& problem, const int64_t* symbols);

/*! \brief "M = 4, K = 16". */
std::string FormatSymbols(const Plan& plan, const int64_t* symbols);

/*! \brief "float32 tensor [M, 4]", "int32", "pointer". */
std::string Expectation(const Plan& plan, const ParamSpec& param);

/*! \brief "None", "float", "str", ... for an argument that is not what was expected. */
std::string Describe(const tvm::ffi::AnyView& arg);

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_ARGUMENT_ERROR_H_
