#include "launch_failure.h"

#include "../../backend/common/errors.h"

namespace tilelang {
namespace cuda {
namespace {

constexpr const char* kLaunchError = "LaunchError";

/*! \brief After these the context accepts no more calls, whatever is tried. */
bool LosesContext(int code) {
  switch (code) {
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
    case kTensorMemoryLeak:
      return true;
    default:
      return false;
  }
}

std::string Advice(int code) {
  if (LosesContext(code)) {
    return "a kernel that ran before has failed, and the CUDA context of this process is lost: "
           "every further call fails until the process is started anew. CUDA_LAUNCH_BLOCKING=1 or "
           "compute-sanitizer tells which kernel it was";
  }
  if (code == kNotInitialized) {
    return "CUDA cannot be used in a process forked after CUDA was initialised; start workers "
           "with the method 'spawn'";
  }
  return "";
}

std::string Triple(const int64_t* values) {
  return "(" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " +
         std::to_string(values[2]) + ")";
}

int64_t AvailableShared(const DeviceModule& module, const LoadedKernel& kernel) {
  return module.max_shared() - kernel.static_shared;
}

}  // namespace

std::string Launch::Text() const {
  std::string text = "grid " + Triple(grid) + ", block " + Triple(block);
  if (cluster_blocks() > 1) text += ", cluster " + Triple(cluster);
  return text + ", " + std::to_string(dynamic_shared) + " bytes of dynamic shared memory";
}

std::string DeviceText(int device) { return "cuda:" + std::to_string(device); }

void FailDriver(const Driver& driver, const std::string& who, const std::string& doing, int code,
                const std::string& hint) {
  std::string advice = hint.empty() ? Advice(code) : hint;
  runtime::Fail(kLaunchError, who + ": " + doing + " failed: " + driver.Describe(code) +
                                  (advice.empty() ? "" : "; " + advice));
}

void FailLaunch(DeviceModule& module, const std::string& who, const std::string& entry,
                size_t index, const Launch& launch, int code) {
  const Driver& driver = module.driver();
  const LoadedKernel& kernel = module.kernel(index);
  std::string hint;
  if (code == kOutOfResources) {
    hint = "a block of " + std::to_string(launch.threads()) + " threads with " +
           std::to_string(kernel.registers) + " registers each and " +
           std::to_string(kernel.static_shared + launch.dynamic_shared) +
           " bytes of shared memory does not fit the device";
  } else if (code == kCooperativeTooLarge) {
    int blocks = 0;
    driver.api().OccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel.function, static_cast<int>(launch.threads()),
        static_cast<size_t>(launch.dynamic_shared));
    int64_t fit = int64_t{blocks} * driver.Attribute(kMultiprocessorCount, module.device());
    hint = "all blocks of a cooperative launch must run at once: " +
           std::to_string(launch.grid[0] * launch.grid[1] * launch.grid[2]) +
           " were asked for, and " + std::to_string(fit) + " fit the device";
  }
  FailDriver(driver, who,
             "launching kernel '" + entry + "' on " + DeviceText(module.device()) + " with " +
                 launch.Text(),
             code, hint);
}

void CheckLaunch(DeviceModule& module, const std::string& who, size_t index,
                 const Launch& launch) {
  LoadedKernel& kernel = module.kernel(index);
  const std::string where = " on " + DeviceText(module.device());
  for (int dim = 0; dim < 3; ++dim) {
    if (launch.grid[dim] > module.max_grid(dim)) {
      runtime::Fail(kLaunchError, who + ": a grid of " + Triple(launch.grid) + " blocks is needed" +
                                      where + ", and at most " +
                                      std::to_string(module.max_grid(dim)) + " along " +
                                      "xyz"[dim] + " are possible");
    }
    if (launch.grid[dim] % launch.cluster[dim] != 0) {
      runtime::Fail(kLaunchError, who + ": a grid of " + Triple(launch.grid) +
                                      " blocks is no multiple of the cluster " +
                                      Triple(launch.cluster));
    }
  }
  if (launch.threads() < 1 || launch.threads() > kernel.max_threads) {
    runtime::Fail(kLaunchError, who + ": a block of " + Triple(launch.block) + " = " +
                                    std::to_string(launch.threads()) + " threads is needed" +
                                    where + ", and the kernel, with " +
                                    std::to_string(kernel.registers) +
                                    " registers a thread, can run 1 to " +
                                    std::to_string(kernel.max_threads));
  }
  if (launch.dynamic_shared > kernel.dynamic_shared.load(std::memory_order_relaxed)) {
    if (launch.dynamic_shared > AvailableShared(module, kernel)) {
      runtime::Fail(kLaunchError, who + ": a block needs " +
                                      std::to_string(launch.dynamic_shared) +
                                      " bytes of dynamic shared memory" + where + " (" +
                                      module.driver().DeviceName(module.device()) + "), and " +
                                      std::to_string(AvailableShared(module, kernel)) +
                                      " are available" +
                                      (kernel.static_shared > 0
                                           ? " beside " + std::to_string(kernel.static_shared) +
                                                 " static bytes"
                                           : ""));
    }
    int code = module.RaiseShared(index, launch.dynamic_shared);
    if (code != kSuccess) {
      FailDriver(module.driver(), who,
                 "reserving " + std::to_string(launch.dynamic_shared) +
                     " bytes of dynamic shared memory" + where,
                 code);
    }
  }
  constexpr int64_t kPortableCluster = 8;
  if (launch.cluster_blocks() > kPortableCluster && !kernel.large_cluster.load()) {
    int code =
        module.driver().api().FuncSetAttribute(kernel.function, kNonPortableClusterAllowed, 1);
    if (code != kSuccess) {
      FailDriver(module.driver(), who, "allowing a cluster of " + Triple(launch.cluster), code);
    }
    kernel.large_cluster.store(true);
  }
}

}  // namespace cuda
}  // namespace tilelang
