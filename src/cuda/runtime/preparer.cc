/*!
 * \file preparer.cc
 * \brief Loading, limits and error messages, for adapters that launch from Python.
 */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <memory>
#include <string>

#include "../../backend/common/errors.h"
#include "kernel_set.h"

namespace tilelang {
namespace cuda {
namespace {

namespace ffi = tvm::ffi;
using Values = ffi::Array<int64_t>;

/*! \brief A launch of kernel `k` from grid, block and dynamic shared bytes. */
Launch MakeLaunch(const LaunchKind& kind, const Values& extents) {
  if (extents.size() != 7) runtime::Fail("ValueError", "a launch has seven extents");
  return {{extents[0], extents[1], extents[2]},
          {extents[3], extents[4], extents[5]},
          extents[6],
          {kind.cluster[0], kind.cluster[1], kind.cluster[2]},
          kind.cooperative,
          kind.programmatic};
}

/*!
 * \brief Without arguments: find the driver. With (device, kernel, extents, stream): check the
 * launch and return the handles of context and function. With a result code behind them: throw the
 * explanation of a launch that failed with it.
 */
ffi::Any Prepare(KernelSet* kernels, const ffi::AnyView* args, int num_args) {
  kernels->driver();
  if (num_args == 0) return nullptr;
  if (num_args < 4) runtime::Fail("ValueError", "device, kernel, extents and stream are needed");
  DeviceModule& module = kernels->OnDevice(static_cast<int>(args[0].cast<int64_t>()));
  auto k = static_cast<size_t>(args[1].cast<int64_t>());
  if (k >= kernels->size()) runtime::Fail("ValueError", "there is no such kernel");
  const LaunchKind& kind = kernels->kind(k);
  Launch launch = MakeLaunch(kind, args[2].cast<Values>());
  ContextScope scope(module.driver(), module.context());
  int code = num_args > 4 ? static_cast<int>(args[4].cast<int64_t>()) : scope.code();
  if (code != kSuccess) FailLaunch(module, kind.who, kind.entry, k, launch, code);
  CheckLaunch(module, kind.who, k, launch);
  module.NoteUse(reinterpret_cast<Stream>(args[3].cast<int64_t>()));
  return Values{reinterpret_cast<int64_t>(module.context()),
                reinterpret_cast<int64_t>(module.kernel(k).function)};
}

ffi::Function MakePreparer(const ffi::String& plan_json, const ffi::Bytes& code,
                           const ffi::String& archs, const ffi::Array<ffi::String>& lines,
                           const ffi::String& driver_path) {
  auto kernels = std::make_shared<KernelSet>(runtime::Plan::FromJson(plan_json), code, archs, lines,
                                             driver_path);
  return ffi::Function::FromPacked(
      [kernels](const ffi::AnyView* args, int32_t num_args, ffi::Any* result) {
        *result = Prepare(kernels.get(), args, num_args);
      });
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tl.cuda.make_preparer", MakePreparer)
      .def("tl.cuda.current_device", [](const ffi::String& driver_path) {
        return int64_t{Driver::Load(driver_path, "").CurrentDevice()};
      });
}

}  // namespace cuda
}  // namespace tilelang
