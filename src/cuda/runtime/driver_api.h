/*!
 * \file driver_api.h
 * \brief The part of NVIDIA's driver interface that launching needs, declared by hand.
 *
 * Nothing of the toolkit is included or linked. Numbers and layouts are those of the driver's
 * stable binary interface.
 */
#ifndef TILELANG_CUDA_RUNTIME_DRIVER_API_H_
#define TILELANG_CUDA_RUNTIME_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

namespace tilelang {
namespace cuda {

using Device = int;
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = struct StreamHandle*;

/*! \brief Result codes that are told apart; others are only named. */
enum Result : int {
  kSuccess = 0,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kNvlinkUncorrectable = 220,
  kUnsupportedPtx = 222,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kCooperativeTooLarge = 720,
  kTensorMemoryLeak = 721,
};

enum DeviceAttribute : int {
  kMaxGridDimX = 5,
  kMaxGridDimY = 6,
  kMaxGridDimZ = 7,
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedBytesPerBlockOptIn = 97,
};

enum FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedBytes = 1,
  kLocalBytes = 3,
  kNumRegisters = 4,
  kMaxDynamicSharedBytes = 8,
  kNonPortableClusterAllowed = 14,
};

enum LaunchAttributeId : int {
  kCooperative = 2,
  kClusterDimension = 4,
  kProgrammaticStreamSerialization = 6,
};

/*! \brief One attribute of a launch; the value is a union of 64 bytes. */
struct LaunchAttribute {
  int32_t id;
  int32_t padding;
  union {
    char bytes[64];
    int32_t flag;
    struct {
      uint32_t x, y, z;
    } cluster;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72, "the driver's layout");

struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  uint32_t num_attributes;
};
static_assert(sizeof(LaunchConfig) == 56, "the driver's layout");

constexpr int kCaptureModeRelaxed = 2;
constexpr int kNotCapturing = 0;

/*! \brief The driver's functions, by their names without the prefix `cu`. */
struct DriverApi {
  int (*Init)(unsigned);
  int (*DriverGetVersion)(int*);
  int (*GetErrorName)(int, const char**);
  int (*GetErrorString)(int, const char**);
  int (*DeviceGetCount)(int*);
  int (*DeviceGet)(Device*, int);
  int (*DeviceGetName)(char*, int, Device);
  int (*DeviceGetAttribute)(int*, int, Device);
  int (*DevicePrimaryCtxRetain)(Context*, Device);
  int (*CtxGetCurrent)(Context*);
  int (*CtxGetDevice)(Device*);
  int (*CtxPushCurrent)(Context);
  int (*CtxPopCurrent)(Context*);
  int (*ModuleLoadData)(Module*, const void*);
  int (*ModuleUnload)(Module);
  int (*ModuleGetFunction)(Function*, Module, const char*);
  int (*FuncGetAttribute)(int*, int, Function);
  int (*FuncSetAttribute)(Function, int, int);
  int (*OccupancyMaxActiveBlocksPerMultiprocessor)(int*, Function, int, size_t);
  int (*StreamIsCapturing)(Stream, int*);
  int (*StreamSynchronize)(Stream);
  int (*ThreadExchangeStreamCaptureMode)(int*);
  int (*LaunchKernelEx)(const LaunchConfig*, Function, void**, void**);
};

}  // namespace cuda
}  // namespace tilelang
#endif  // TILELANG_CUDA_RUNTIME_DRIVER_API_H_
