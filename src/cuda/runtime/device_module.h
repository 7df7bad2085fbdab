/*!
 * \file device_module.h
 * \brief The machine code of a compiled function on one device.
 */
#ifndef TILELANG_CUDA_RUNTIME_DEVICE_MODULE_H_
#define TILELANG_CUDA_RUNTIME_DEVICE_MODULE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver.h"

namespace tilelang {
namespace cuda {

/*! \brief What the launcher was made from. */
struct Image {
  std::string code;  // cubin or fatbin
  std::vector<std::string> entries;
  std::string archs;  // "sm_90a", or several with commas; for messages
  std::string who;    // beginning of every message
};

/*! \brief A loaded kernel and its limits. */
struct LoadedKernel {
  Function function = nullptr;
  int max_threads = 0;
  int registers = 0;
  int static_shared = 0;
  /*! \brief Dynamic shared bytes it may be launched with; raised when a launch needs more. */
  std::atomic<int64_t> dynamic_shared{0};
  std::atomic<bool> large_cluster{false};
};

/*! \brief A module in the primary context of a device; frameworks use the same context. */
class DeviceModule {
 public:
  /*! \brief Load the code; throws LaunchError. */
  DeviceModule(const Driver& driver, const Image& image, int device);
  /*! \brief Unloads the code, unless a captured graph may still run it. */
  ~DeviceModule();
  DeviceModule(const DeviceModule&) = delete;
  DeviceModule& operator=(const DeviceModule&) = delete;

  const Driver& driver() const { return driver_; }
  int device() const { return device_; }
  Context context() const { return context_; }
  LoadedKernel& kernel(size_t index) { return kernels_[index]; }
  int64_t max_shared() const { return max_shared_; }
  int64_t max_grid(int dim) const { return max_grid_[dim]; }

  /*! \brief Let a kernel be launched with `bytes` of dynamic shared memory; a result code. */
  int RaiseShared(size_t index, int64_t bytes);

  /*! \brief Note that `stream` is about to run a kernel: a capturing one keeps the code alive. */
  void NoteUse(Stream stream) {
    if (stream != nullptr && !captured_.load(std::memory_order_relaxed)) NoteCapture(stream);
  }

 private:
  void LoadCode(const Image& image);
  void LoadKernel(const Image& image, size_t index);
  void NoteCapture(Stream stream);

  const Driver& driver_;
  int device_;
  Context context_ = nullptr;
  Module module_ = nullptr;
  std::vector<LoadedKernel> kernels_;
  int64_t max_shared_ = 0;
  int64_t max_grid_[3] = {0, 0, 0};
  std::mutex mutex_;  // of the attributes of kernels
  std::atomic<bool> captured_{false};
};

/*! \brief The modules of one image, loaded on each device when it is first used there. */
class ModuleTable {
 public:
  explicit ModuleTable(Image image) : image_(std::move(image)) {}
  ~ModuleTable();

  const Image& image() const { return image_; }

  DeviceModule& Get(const Driver& driver, int device) {
    DeviceModule* known = device >= 0 && device < kMaxDevices
                              ? modules_[device].load(std::memory_order_acquire)
                              : nullptr;
    return known != nullptr ? *known : LoadOn(driver, device);
  }

 private:
  static constexpr int kMaxDevices = 64;
  DeviceModule& LoadOn(const Driver& driver, int device);

  Image image_;
  std::mutex mutex_;
  std::atomic<DeviceModule*> modules_[kMaxDevices] = {};
};

}  // namespace cuda
}  // namespace tilelang
#endif  // TILELANG_CUDA_RUNTIME_DEVICE_MODULE_H_
