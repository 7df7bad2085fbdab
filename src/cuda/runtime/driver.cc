#include "driver.h"

#include <dlfcn.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "../../backend/common/errors.h"

namespace tilelang {
namespace cuda {
namespace {

namespace ffi = tvm::ffi;

constexpr const char* kLaunchError = "LaunchError";

template <typename F>
void Find(void* library, const char* name, F* out, std::string* missing) {
  *out = reinterpret_cast<F>(dlsym(library, name));
  if (*out == nullptr && missing->empty()) *missing = name;
}

/*! \return The name of a function that the library lacks, or an empty string. */
std::string FindAll(void* library, DriverApi* api) {
  std::string missing;
  Find(library, "cuInit", &api->Init, &missing);
  Find(library, "cuDriverGetVersion", &api->DriverGetVersion, &missing);
  Find(library, "cuGetErrorName", &api->GetErrorName, &missing);
  Find(library, "cuGetErrorString", &api->GetErrorString, &missing);
  Find(library, "cuDeviceGetCount", &api->DeviceGetCount, &missing);
  Find(library, "cuDeviceGet", &api->DeviceGet, &missing);
  Find(library, "cuDeviceGetName", &api->DeviceGetName, &missing);
  Find(library, "cuDeviceGetAttribute", &api->DeviceGetAttribute, &missing);
  Find(library, "cuDevicePrimaryCtxRetain", &api->DevicePrimaryCtxRetain, &missing);
  Find(library, "cuCtxGetCurrent", &api->CtxGetCurrent, &missing);
  Find(library, "cuCtxGetDevice", &api->CtxGetDevice, &missing);
  Find(library, "cuCtxPushCurrent_v2", &api->CtxPushCurrent, &missing);
  Find(library, "cuCtxPopCurrent_v2", &api->CtxPopCurrent, &missing);
  Find(library, "cuModuleLoadData", &api->ModuleLoadData, &missing);
  Find(library, "cuModuleUnload", &api->ModuleUnload, &missing);
  Find(library, "cuModuleGetFunction", &api->ModuleGetFunction, &missing);
  Find(library, "cuFuncGetAttribute", &api->FuncGetAttribute, &missing);
  Find(library, "cuFuncSetAttribute", &api->FuncSetAttribute, &missing);
  Find(library, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
       &api->OccupancyMaxActiveBlocksPerMultiprocessor, &missing);
  Find(library, "cuStreamIsCapturing", &api->StreamIsCapturing, &missing);
  Find(library, "cuStreamSynchronize", &api->StreamSynchronize, &missing);
  Find(library, "cuThreadExchangeStreamCaptureMode", &api->ThreadExchangeStreamCaptureMode,
       &missing);
  Find(library, "cuLaunchKernelEx", &api->LaunchKernelEx, &missing);
  return missing;
}

std::string Prefix(const std::string& who) { return who.empty() ? "" : who + ": "; }

void* Open(const std::string& path, const std::string& who) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* reason = dlerror();
  runtime::Fail(kLaunchError, Prefix(who) +
                                  "an NVIDIA GPU is needed, and its driver cannot be loaded: " +
                                  (reason != nullptr ? reason : path.c_str()));
}

void Initialise(const Driver& driver, const std::string& who) {
  int count = 0;
  int code = driver.api().Init(0);
  if (code == kSuccess) code = driver.api().DeviceGetCount(&count);
  if (code == kSuccess && count > 0) return;
  std::string reason = code == kSuccess ? "it finds no device" : driver.Describe(code);
  runtime::Fail(kLaunchError, Prefix(who) + "NVIDIA's driver cannot be used: " + reason +
                                  "; nvidia-smi and CUDA_VISIBLE_DEVICES tell more");
}

/*! \brief [version, and name and architecture of every device]. */
ffi::Array<ffi::Any> DescribeDriver(const ffi::String& path) {
  const Driver& driver = Driver::Load(path, "");
  int version = 0;
  int count = 0;
  driver.api().DriverGetVersion(&version);
  driver.api().DeviceGetCount(&count);
  ffi::Array<ffi::Any> out{int64_t{version}};
  for (int device = 0; device < count; ++device) {
    out.push_back(ffi::Array<ffi::String>{driver.DeviceName(device), driver.DeviceArch(device)});
  }
  return out;
}

}  // namespace

const Driver& Driver::Load(const std::string& path, const std::string& who) {
  static std::mutex mutex;
  static auto* drivers = new std::map<std::string, std::unique_ptr<Driver>>();  // never unloaded
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Driver>& known = (*drivers)[path];
  if (known == nullptr) {
    auto driver = std::make_unique<Driver>();
    std::string missing = FindAll(Open(path, who), &driver->api_);
    if (!missing.empty()) {
      runtime::Fail(kLaunchError, Prefix(who) + "the installed NVIDIA driver lacks " + missing +
                                      "; a driver for CUDA 11.8 or newer is needed");
    }
    Initialise(*driver, who);
    known = std::move(driver);
  }
  return *known;
}

std::string Driver::Describe(int code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  api_.GetErrorName(code, &name);
  api_.GetErrorString(code, &text);
  std::string out = name != nullptr ? name : "CUDA error " + std::to_string(code);
  return text != nullptr ? out + " (" + text + ")" : out;
}

int Driver::CurrentDevice() const {
  Device device = 0;
  return api_.CtxGetDevice(&device) == kSuccess ? device : 0;
}

int Driver::Attribute(DeviceAttribute attribute, int device) const {
  int value = 0;
  return api_.DeviceGetAttribute(&value, attribute, device) == kSuccess ? value : 0;
}

std::string Driver::DeviceName(int device) const {
  char name[256] = "";
  return api_.DeviceGetName(name, sizeof(name), device) == kSuccess ? name : "unknown device";
}

std::string Driver::DeviceArch(int device) const {
  return "sm_" + std::to_string(Attribute(kComputeCapabilityMajor, device)) +
         std::to_string(Attribute(kComputeCapabilityMinor, device));
}

ContextScope::ContextScope(const Driver& driver, Context context) : driver_(driver) {
  Context current = nullptr;
  code_ = driver_.api().CtxGetCurrent(&current);
  if (code_ != kSuccess || current == context) return;
  code_ = driver_.api().CtxPushCurrent(context);
  pushed_ = code_ == kSuccess;
}

ContextScope::~ContextScope() {
  Context popped = nullptr;
  if (pushed_) driver_.api().CtxPopCurrent(&popped);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("tl.cuda.describe_driver", DescribeDriver);
}

}  // namespace cuda
}  // namespace tilelang
