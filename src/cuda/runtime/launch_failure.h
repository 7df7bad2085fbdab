/*!
 * \file launch_failure.h
 * \brief What a user reads when the driver refuses something.
 */
#ifndef TILELANG_CUDA_RUNTIME_LAUNCH_FAILURE_H_
#define TILELANG_CUDA_RUNTIME_LAUNCH_FAILURE_H_

#include <cstdint>
#include <string>

#include "device_module.h"

namespace tilelang {
namespace cuda {

/*! \brief One launch with all numbers known. */
struct Launch {
  int64_t grid[3];
  int64_t block[3];
  int64_t dynamic_shared;
  int64_t cluster[3];
  bool cooperative;
  bool programmatic;

  int64_t threads() const { return block[0] * block[1] * block[2]; }
  int64_t cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
  /*! \brief "grid (4, 1, 1), block (128, 1, 1), 1024 bytes of dynamic shared memory". */
  std::string Text() const;
};

/*! \brief "cuda:1". */
std::string DeviceText(int device);

/*!
 * \brief Throw LaunchError: "<who>: <doing> failed: <the driver's words>", and what to do.
 * \param hint Added in place of the general advice for the code.
 */
[[noreturn]] void FailDriver(const Driver& driver, const std::string& who,
                             const std::string& doing, int code, const std::string& hint = "");

/*! \brief Explain a failed launch; the context of the device must be current. */
[[noreturn]] void FailLaunch(DeviceModule& module, const std::string& who,
                             const std::string& entry, size_t kernel, const Launch& launch,
                             int code);

/*! \brief True for a launch that the device can run as things are; CheckLaunch decides others. */
inline bool IsUsual(DeviceModule& module, size_t index, const Launch& launch) {
  const LoadedKernel& kernel = module.kernel(index);
  int64_t threads = launch.threads();
  return launch.grid[0] <= module.max_grid(0) && launch.grid[1] <= module.max_grid(1) &&
         launch.grid[2] <= module.max_grid(2) && launch.cluster_blocks() == 1 && threads >= 1 &&
         threads <= kernel.max_threads &&
         launch.dynamic_shared <= kernel.dynamic_shared.load(std::memory_order_relaxed);
}

/*! \brief Throw LaunchError if the device cannot run such a launch at all. */
void CheckLaunch(DeviceModule& module, const std::string& who, size_t kernel,
                 const Launch& launch);

}  // namespace cuda
}  // namespace tilelang
#endif  // TILELANG_CUDA_RUNTIME_LAUNCH_FAILURE_H_
