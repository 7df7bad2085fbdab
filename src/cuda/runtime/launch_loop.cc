/*!
 * \file launch_loop.cc
 * \brief A loop of bare driver launches: what calls of a kernel are measured against.
 */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <chrono>
#include <string>
#include <vector>

#include "../../backend/common/errors.h"
#include "device_module.h"
#include "launch_failure.h"

namespace tilelang {
namespace cuda {
namespace {

namespace ffi = tvm::ffi;
using Values = ffi::Array<int64_t>;

/*!
 * \brief Seconds of `count` launches of one kernel, without waiting for the device.
 * \param extents Grid and block along x, y and z, and dynamic shared bytes.
 */
double TimeLaunches(const ffi::String& driver_path, const ffi::Bytes& code,
                    const ffi::String& entry, const Values& extents, const Values& slots,
                    int64_t device, int64_t stream, int64_t count) {
  const std::string who = "launch loop";
  if (extents.size() != 7) runtime::Fail("ValueError", who + ": seven extents are needed");
  const Driver& driver = Driver::Load(driver_path, who);
  Image image{std::string(code.data(), code.size()), {std::string(entry)}, "", who};
  DeviceModule module(driver, image, static_cast<int>(device));
  ContextScope scope(driver, module.context());
  Launch launch{{extents[0], extents[1], extents[2]},
                {extents[3], extents[4], extents[5]},
                extents[6],
                {1, 1, 1},
                false,
                false};
  CheckLaunch(module, who, 0, launch);
  std::vector<int64_t> values(slots.begin(), slots.end());
  std::vector<void*> addresses;
  for (int64_t& value : values) addresses.push_back(&value);
  LaunchConfig config{};
  for (int dim = 0; dim < 3; ++dim) {
    config.grid[dim] = static_cast<uint32_t>(launch.grid[dim]);
    config.block[dim] = static_cast<uint32_t>(launch.block[dim]);
  }
  config.shared_bytes = static_cast<uint32_t>(launch.dynamic_shared);
  config.stream = reinterpret_cast<Stream>(stream);
  auto launch_kernel = driver.api().LaunchKernelEx;
  Function function = module.kernel(0).function;
  int code_seen = kSuccess;
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    code_seen |= launch_kernel(&config, function, addresses.data(), nullptr);
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  // The module leaves with this scope, so the device must be done with it.
  if (code_seen == kSuccess) code_seen = driver.api().StreamSynchronize(config.stream);
  if (code_seen != kSuccess) FailLaunch(module, who, entry, 0, launch, code_seen);
  return elapsed.count();
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tl.cuda.time_launches", TimeLaunches);
}

}  // namespace cuda
}  // namespace tilelang
