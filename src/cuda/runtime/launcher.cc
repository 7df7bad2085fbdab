/*!
 * \file launcher.cc
 * \brief Calls CUDA kernels: binds arguments, allocates, and queues launches on a stream.
 *
 * Nothing here waits for the device, and memory comes from the framework's allocator alone, so a
 * call can be captured into a CUDA graph.
 */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../backend/common/allocation.h"
#include "../../backend/common/binder.h"
#include "../../backend/common/errors.h"
#include "../../backend/common/outputs.h"
#include "../../backend/common/python_api.h"
#include "../../backend/common/small_array.h"
#include "kernel_set.h"

namespace tilelang {
namespace cuda {
namespace {

namespace ffi = tvm::ffi;
using runtime::Binder;
using runtime::Frame;
using runtime::KernelSpec;
using runtime::Plan;
using runtime::SmallArray;

/*! \brief Stream of the tensors; a call without tensors takes torch's current one. */
Stream CallStream(const Frame& frame) {
  void* stream = TVMFFIEnvGetStream(kDLCUDA, frame.device.device_id);
  const DLPackExchangeAPI* torch = runtime::TorchExchangeApi();
  if (stream == nullptr && !frame.device_known && torch != nullptr && runtime::PythonAvailable()) {
    int code = torch->current_work_stream(kDLCUDA, frame.device.device_id, &stream);
    if (code != 0) runtime::Fail("RuntimeError", "torch does not tell its current stream");
  }
  return static_cast<Stream>(stream);
}

class Launcher {
 public:
  Launcher(Plan plan, const ffi::Bytes& code, const ffi::String& archs,
           const ffi::Array<ffi::String>& lines, std::string driver_path)
      : binder_(std::move(plan)),
        kernels_(binder_.plan(), code, archs, lines, std::move(driver_path)) {}

  ffi::Any Call(const ffi::AnyView* args, int num_args) {
    const Driver& driver = kernels_.driver();
    const Plan& plan = binder_.plan();
    Frame frame(plan);
    binder_.Bind(args, num_args, &frame);
    if (!frame.device_known) frame.device = {kDLCUDA, driver.CurrentDevice()};
    SmallArray<Launch, 4> launches(plan.kernels.size());
    bool any = false;
    for (size_t k = 0; k < plan.kernels.size(); ++k) any |= Evaluate(k, frame, &launches[k]);
    if (!any) {
      runtime::Outputs outputs(binder_, &frame);
      return outputs.Take();
    }
    DeviceModule& module = kernels_.OnDevice(frame.device.device_id);
    ContextScope scope(driver, module.context());
    if (scope.code() != kSuccess) {
      FailDriver(driver, plan.name, "using " + DeviceText(module.device()), scope.code());
    }
    // Whatever can be refused is refused before anything is allocated or queued.
    for (size_t k = 0; k < launches.size(); ++k) {
      if (Runs(launches[k])) CheckLaunch(module, kernels_.kind(k).who, k, launches[k]);
    }
    runtime::Outputs outputs(binder_, &frame);
    std::vector<ffi::Tensor> workspaces = runtime::AllocateWorkspaces(binder_, &frame);
    Stream stream = CallStream(frame);
    module.NoteUse(stream);
    for (size_t k = 0; k < launches.size(); ++k) {
      if (Runs(launches[k])) Queue(&module, k, frame, launches[k], stream);
    }
    return outputs.Take();
  }

 private:
  static bool Runs(const Launch& launch) { return launch.grid[0] != 0; }

  /*! \return Whether there is anything to launch; if not, the grid is 0 along x. */
  bool Evaluate(size_t k, const Frame& frame, Launch* launch) const {
    const KernelSpec& kernel = binder_.plan().kernels[k];
    const LaunchKind& kind = kernels_.kind(k);
    const int64_t* symbols = frame.symbols.data();
    if (binder_.EvalGrid(kernel, frame, launch->grid) == 0) {
      launch->grid[0] = 0;
      return false;
    }
    for (int dim = 0; dim < 3; ++dim) {
      launch->block[dim] = kernel.block[dim].Eval(symbols);
      launch->cluster[dim] = kind.cluster[dim];
    }
    launch->dynamic_shared = kernel.dyn_smem.Eval(symbols);
    launch->cooperative = kind.cooperative;
    launch->programmatic = kind.programmatic;
    return true;
  }

  void Queue(DeviceModule* module, size_t k, const Frame& frame, const Launch& launch,
             Stream stream) const {
    const KernelSpec& kernel = binder_.plan().kernels[k];
    SmallArray<uint64_t, 32> slots(kernel.args.size());
    SmallArray<void*, 32> addresses(kernel.args.size());
    binder_.FillSlots(kernel, frame, slots.data());
    // A slot holds its value in the low bytes, and the driver copies as many as a parameter has.
    for (size_t i = 0; i < slots.size(); ++i) addresses[i] = &slots[i];
    LaunchAttribute attributes[3];
    LaunchConfig config{};
    for (int dim = 0; dim < 3; ++dim) {
      config.grid[dim] = static_cast<uint32_t>(launch.grid[dim]);
      config.block[dim] = static_cast<uint32_t>(launch.block[dim]);
    }
    config.shared_bytes = static_cast<uint32_t>(launch.dynamic_shared);
    config.stream = stream;
    config.attributes = attributes;
    if (launch.cluster_blocks() > 1) {
      LaunchAttribute& attribute = attributes[config.num_attributes++];
      attribute = {};
      attribute.id = kClusterDimension;
      attribute.value.cluster = {static_cast<uint32_t>(launch.cluster[0]),
                                 static_cast<uint32_t>(launch.cluster[1]),
                                 static_cast<uint32_t>(launch.cluster[2])};
    }
    auto raise = [&](LaunchAttributeId id) {
      LaunchAttribute& attribute = attributes[config.num_attributes++];
      attribute = {};
      attribute.id = id;
      attribute.value.flag = 1;
    };
    if (launch.cooperative) raise(kCooperative);
    if (launch.programmatic) raise(kProgrammaticStreamSerialization);
    int code = module->driver().api().LaunchKernelEx(&config, module->kernel(k).function,
                                                     addresses.data(), nullptr);
    if (code != kSuccess) FailLaunch(*module, kernels_.kind(k).who, kernel.entry, k, launch, code);
  }

  Binder binder_;
  KernelSet kernels_;
};

ffi::Function MakeLauncher(const ffi::String& plan_json, const ffi::Bytes& code,
                           const ffi::String& archs, const ffi::Array<ffi::String>& lines,
                           const ffi::String& driver_path) {
  auto launcher = std::make_shared<Launcher>(Plan::FromJson(plan_json), code, archs, lines,
                                             driver_path);
  return ffi::Function::FromPacked(
      [launcher](const ffi::AnyView* args, int32_t num_args, ffi::Any* result) {
        *result = launcher->Call(args, num_args);
      });
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tl.cuda.make_launcher", MakeLauncher);
}

}  // namespace cuda
}  // namespace tilelang
