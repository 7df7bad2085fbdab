#include "device_module.h"

#include <utility>

#include "launch_failure.h"

namespace tilelang {
namespace cuda {

DeviceModule::DeviceModule(const Driver& driver, const Image& image, int device)
    : driver_(driver), device_(device), kernels_(image.entries.size()) {
  const DriverApi& api = driver.api();
  Device handle = 0;
  int code = api.DeviceGet(&handle, device);
  if (code == kSuccess) code = api.DevicePrimaryCtxRetain(&context_, handle);
  if (code != kSuccess) FailDriver(driver, image.who, "using " + DeviceText(device), code);
  max_shared_ = driver.Attribute(kMaxSharedBytesPerBlockOptIn, handle);
  max_grid_[0] = driver.Attribute(kMaxGridDimX, handle);
  max_grid_[1] = driver.Attribute(kMaxGridDimY, handle);
  max_grid_[2] = driver.Attribute(kMaxGridDimZ, handle);
  ContextScope scope(driver, context_);
  if (scope.code() != kSuccess) {
    FailDriver(driver, image.who, "using " + DeviceText(device), scope.code());
  }
  RelaxedCapture relaxed(driver);
  LoadCode(image);
  for (size_t i = 0; i < kernels_.size(); ++i) LoadKernel(image, i);
}

void DeviceModule::LoadCode(const Image& image) {
  int code = driver_.api().ModuleLoadData(&module_, image.code.data());
  if (code == kSuccess) return;
  std::string hint;
  if (code == kNoBinaryForGpu || code == kUnsupportedPtx) {
    hint = "the kernel was compiled for " + image.archs + "; " + DeviceText(device_) + " (" +
           driver_.DeviceName(device_) + ") is " + driver_.DeviceArch(device_);
  }
  FailDriver(driver_, image.who, "loading it on " + DeviceText(device_), code, hint);
}

void DeviceModule::LoadKernel(const Image& image, size_t index) {
  const DriverApi& api = driver_.api();
  LoadedKernel& kernel = kernels_[index];
  const std::string& entry = image.entries[index];
  int code = api.ModuleGetFunction(&kernel.function, module_, entry.c_str());
  auto read = [&](FunctionAttribute attribute, int* out) {
    if (code == kSuccess) code = api.FuncGetAttribute(out, attribute, kernel.function);
  };
  read(kMaxThreadsPerBlock, &kernel.max_threads);
  read(kNumRegisters, &kernel.registers);
  read(kSharedBytes, &kernel.static_shared);
  int dynamic = 0;
  read(kMaxDynamicSharedBytes, &dynamic);
  kernel.dynamic_shared.store(dynamic);
  if (code == kSuccess) return;
  api.ModuleUnload(module_);
  FailDriver(driver_, image.who, "finding kernel '" + entry + "' in its code", code);
}

DeviceModule::~DeviceModule() {
  if (captured_.load()) return;
  // Results are of no use here: at exit the driver may be gone already, and the code with it.
  ContextScope scope(driver_, context_);
  if (scope.code() != kSuccess) return;
  RelaxedCapture relaxed(driver_);
  driver_.api().ModuleUnload(module_);
}

int DeviceModule::RaiseShared(size_t index, int64_t bytes) {
  LoadedKernel& kernel = kernels_[index];
  std::lock_guard<std::mutex> lock(mutex_);
  if (kernel.dynamic_shared.load() >= bytes) return kSuccess;
  int code = driver_.api().FuncSetAttribute(kernel.function, kMaxDynamicSharedBytes,
                                            static_cast<int>(bytes));
  if (code == kSuccess) kernel.dynamic_shared.store(bytes);
  return code;
}

void DeviceModule::NoteCapture(Stream stream) {
  int status = kNotCapturing;
  if (driver_.api().StreamIsCapturing(stream, &status) == kSuccess && status != kNotCapturing) {
    captured_.store(true, std::memory_order_relaxed);
  }
}

ModuleTable::~ModuleTable() {
  for (std::atomic<DeviceModule*>& module : modules_) delete module.load();
}

DeviceModule& ModuleTable::LoadOn(const Driver& driver, int device) {
  if (device < 0 || device >= kMaxDevices) {
    FailDriver(driver, image_.who, "using " + DeviceText(device), kInvalidDevice);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  DeviceModule* known = modules_[device].load();
  if (known == nullptr) {
    known = new DeviceModule(driver, image_, device);
    modules_[device].store(known, std::memory_order_release);
  }
  return *known;
}

}  // namespace cuda
}  // namespace tilelang
