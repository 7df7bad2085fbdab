/*!
 * \file python_api.h
 * \brief The few CPython functions the launcher needs, found at run time.
 *
 * The library links against no Python, so one build serves every version; outside a Python
 * process everything here reports "not available".
 */
#ifndef TILELANG_BACKEND_COMMON_PYTHON_API_H_
#define TILELANG_BACKEND_COMMON_PYTHON_API_H_

#include <dlpack/dlpack.h>
#include <tvm/ffi/any.h>

#include <optional>
#include <string>
#include <vector>

namespace tilelang {
namespace runtime {

/*! \brief What torch offers for exchanging tensors; null when there is no torch. */
const DLPackExchangeAPI* TorchExchangeApi();
void SetTorchExchangeApi(void* api);

/*! \brief True inside a running Python interpreter. */
bool PythonAvailable();

/*! \brief Type name of the Python object wrapped in an opaque FFI value. */
std::string PythonTypeName(const tvm::ffi::AnyView& value);

/*! \brief `float(obj)` of a Python number that FFI does not know, e.g. an ml_dtypes scalar. */
std::optional<double> PythonAsDouble(const tvm::ffi::AnyView& value);

/*! \brief `bool(obj)` of a `numpy.bool`. */
std::optional<bool> PythonAsBool(const tvm::ffi::AnyView& value);

/*!
 * \brief Hand tensors allocated by torch to Python as torch tensors.
 *
 * Takes ownership of every tensor, also on failure.
 * \return An opaque FFI value: the tensor itself, or a Python list of all of them.
 */
tvm::ffi::Any TensorsToPython(const std::vector<DLManagedTensorVersioned*>& tensors, bool as_list);

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_PYTHON_API_H_
