/*!
 * \file kernel_set.h
 * \brief The kernels of a launch plan with their code, whoever launches them.
 */
#ifndef TILELANG_CUDA_RUNTIME_KERNEL_SET_H_
#define TILELANG_CUDA_RUNTIME_KERNEL_SET_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/string.h>

#include <atomic>
#include <string>
#include <vector>

#include "../../backend/common/plan.h"
#include "device_module.h"
#include "launch_failure.h"

namespace tilelang {
namespace cuda {

/*! \brief What the launches of one kernel have in common. */
struct LaunchKind {
  std::string who;  // beginning of every message: the function and the user's line
  std::string entry;
  int64_t cluster[3];
  bool cooperative;
  bool programmatic;
};

class KernelSet {
 public:
  /*!
   * \param code Contents of a cubin or fatbin.
   * \param archs What it was compiled for.
   * \param lines "file:line" of every kernel, or an empty string.
   */
  KernelSet(const runtime::Plan& plan, const tvm::ffi::Bytes& code, const tvm::ffi::String& archs,
            const tvm::ffi::Array<tvm::ffi::String>& lines, std::string driver_path);

  const LaunchKind& kind(size_t k) const { return kinds_[k]; }
  size_t size() const { return kinds_.size(); }

  /*! \brief The driver, looked for when it is needed first; throws LaunchError without one. */
  const Driver& driver() {
    const Driver* known = driver_.load(std::memory_order_acquire);
    return known != nullptr ? *known : LoadDriver();
  }

  /*! \brief The code on a device, loaded when it is needed first. */
  DeviceModule& OnDevice(int device) { return modules_.Get(driver(), device); }

 private:
  const Driver& LoadDriver();

  ModuleTable modules_;
  std::vector<LaunchKind> kinds_;
  std::string driver_path_;
  std::atomic<const Driver*> driver_{nullptr};
};

}  // namespace cuda
}  // namespace tilelang
#endif  // TILELANG_CUDA_RUNTIME_KERNEL_SET_H_
