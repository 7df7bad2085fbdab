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
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <array>
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
using runtime::ArgSpec;
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

/*! \brief A kernel with what is the same in every call. */
struct PreparedKernel {
  Launch launch;  // extents that are constants
  bool fixed;     // all of them are, and there is something to launch
  LaunchAttribute attributes[3];
  uint32_t num_attributes = 0;
};

bool IsConst(const std::array<runtime::IntExpr, 3>& exprs) {
  return exprs[0].IsConst() && exprs[1].IsConst() && exprs[2].IsConst();
}

PreparedKernel Prepare(const KernelSpec& kernel, const LaunchKind& kind) {
  PreparedKernel out{};
  Launch& launch = out.launch;
  int64_t blocks = 1;
  bool runs = true;
  bool fixed = IsConst(kernel.grid) && IsConst(kernel.block) && kernel.dyn_smem.IsConst();
  for (int dim = 0; dim < 3; ++dim) {
    launch.cluster[dim] = kind.cluster[dim];
    if (!fixed) continue;
    launch.grid[dim] = kernel.grid[dim].Eval(nullptr);
    launch.block[dim] = kernel.block[dim].Eval(nullptr);
    runs &= launch.grid[dim] > 0 && !__builtin_mul_overflow(blocks, launch.grid[dim], &blocks);
  }
  if (fixed) launch.dynamic_shared = kernel.dyn_smem.Eval(nullptr);
  launch.cooperative = kind.cooperative;
  launch.programmatic = kind.programmatic;
  // Grids that are empty or refused take the way of those that are not known yet.
  out.fixed = fixed && runs;
  if (launch.cluster_blocks() > 1) {
    LaunchAttribute& attribute = out.attributes[out.num_attributes++];
    attribute.id = kClusterDimension;
    attribute.value.cluster = {static_cast<uint32_t>(launch.cluster[0]),
                               static_cast<uint32_t>(launch.cluster[1]),
                               static_cast<uint32_t>(launch.cluster[2])};
  }
  auto raise = [&](LaunchAttributeId id) {
    LaunchAttribute& attribute = out.attributes[out.num_attributes++];
    attribute.id = id;
    attribute.value.flag = 1;
  };
  if (launch.cooperative) raise(kCooperative);
  if (launch.programmatic) raise(kProgrammaticStreamSerialization);
  return out;
}

class Launcher {
 public:
  /*!
   * \param queue Takes the addresses of configuration and arguments and the function's handle,
   * and returns the driver's result code; in place of the driver's own function.
   */
  Launcher(Plan plan, const ffi::Bytes& code, const ffi::String& archs,
           const ffi::Array<ffi::String>& lines, std::string driver_path,
           ffi::Optional<ffi::Function> queue)
      : binder_(std::move(plan)),
        kernels_(binder_.plan(), code, archs, lines, std::move(driver_path)),
        queue_(std::move(queue)) {
    const Plan& known = binder_.plan();
    for (size_t k = 0; k < known.kernels.size(); ++k) {
      prepared_.push_back(Prepare(known.kernels[k], kernels_.kind(k)));
    }
    allocates_ = !known.returns.empty() || !known.workspaces.empty() ||
                 known.num_inputs != static_cast<int>(known.params.size());
  }

  ffi::Any Call(const ffi::AnyView* args, int num_args) {
    const Driver& driver = kernels_.driver();
    const Plan& plan = binder_.plan();
    Frame frame(plan);
    binder_.Bind(args, num_args, &frame);
    if (!frame.device_known) frame.device = {kDLCUDA, driver.CurrentDevice()};
    SmallArray<Launch, 4> launches(prepared_.size());
    bool any = false;
    for (size_t k = 0; k < launches.size(); ++k) any |= Evaluate(k, frame, &launches[k]);
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
      if (Runs(launches[k]) && !IsUsual(module, k, launches[k])) {
        CheckLaunch(module, kernels_.kind(k).who, k, launches[k]);
      }
    }
    if (!allocates_) {
      QueueAll(&module, &frame, launches.data());
      return nullptr;
    }
    runtime::Outputs outputs(binder_, &frame);
    std::vector<ffi::Tensor> workspaces = runtime::AllocateWorkspaces(binder_, &frame);
    QueueAll(&module, &frame, launches.data());
    return outputs.Take();
  }

 private:
  static bool Runs(const Launch& launch) { return launch.grid[0] != 0; }

  /*! \return Whether there is anything to launch; if not, the grid is 0 along x. */
  bool Evaluate(size_t k, const Frame& frame, Launch* launch) const {
    *launch = prepared_[k].launch;
    if (prepared_[k].fixed) return true;
    const KernelSpec& kernel = binder_.plan().kernels[k];
    const int64_t* symbols = frame.symbols.data();
    if (binder_.EvalGrid(kernel, frame, launch->grid) == 0) {
      launch->grid[0] = 0;
      return false;
    }
    for (int dim = 0; dim < 3; ++dim) launch->block[dim] = kernel.block[dim].Eval(symbols);
    launch->dynamic_shared = kernel.dyn_smem.Eval(symbols);
    return true;
  }

  void QueueAll(DeviceModule* module, Frame* frame, const Launch* launches) const {
    Stream stream = CallStream(*frame);
    module->NoteUse(stream);
    for (size_t k = 0; k < prepared_.size(); ++k) {
      if (Runs(launches[k])) Queue(module, k, frame, launches[k], stream);
    }
  }

  void Queue(DeviceModule* module, size_t k, Frame* frame, const Launch& launch,
             Stream stream) const {
    const KernelSpec& kernel = binder_.plan().kernels[k];
    SmallArray<void*, 32> addresses(kernel.args.size());
    // A value is in the low bytes, and the driver copies as many as a parameter has.
    for (size_t i = 0; i < addresses.size(); ++i) addresses[i] = AddressOf(kernel.args[i], frame);
    LaunchConfig config;
    for (int dim = 0; dim < 3; ++dim) {
      config.grid[dim] = static_cast<uint32_t>(launch.grid[dim]);
      config.block[dim] = static_cast<uint32_t>(launch.block[dim]);
    }
    config.shared_bytes = static_cast<uint32_t>(launch.dynamic_shared);
    config.stream = stream;
    config.attributes = const_cast<LaunchAttribute*>(prepared_[k].attributes);  // it only reads
    config.num_attributes = prepared_[k].num_attributes;
    int code = Send(*module, module->kernel(k).function, &config, addresses.data());
    if (code != kSuccess) FailLaunch(*module, kernels_.kind(k).who, kernel.entry, k, launch, code);
  }

  static void* AddressOf(const ArgSpec& arg, Frame* frame) {
    switch (arg.source) {
      case ArgSpec::Source::kParam:
        return &frame->values[arg.index];
      case ArgSpec::Source::kSymbol:
        return &frame->symbols[arg.index];
      case ArgSpec::Source::kWorkspace:
        return &frame->workspaces[arg.index];
    }
    return nullptr;
  }

  int Send(const DeviceModule& module, Function function, LaunchConfig* config,
           void** addresses) const {
    if (!queue_.has_value()) {
      return module.driver().api().LaunchKernelEx(config, function, addresses, nullptr);
    }
    auto number = [](void* pointer) { return reinterpret_cast<int64_t>(pointer); };
    ffi::Any code = (*queue_)(number(config), number(function), number(addresses));
    return static_cast<int>(code.cast<int64_t>());
  }

  Binder binder_;
  KernelSet kernels_;
  ffi::Optional<ffi::Function> queue_;
  std::vector<PreparedKernel> prepared_;
  bool allocates_ = false;
};

ffi::Function MakeLauncher(const ffi::String& plan_json, const ffi::Bytes& code,
                           const ffi::String& archs, const ffi::Array<ffi::String>& lines,
                           const ffi::String& driver_path,
                           const ffi::Optional<ffi::Function>& queue) {
  auto launcher = std::make_shared<Launcher>(Plan::FromJson(plan_json), code, archs, lines,
                                             driver_path, queue);
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
