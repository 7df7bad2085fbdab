#include "dtype.h"

#include <tvm/ffi/dtype.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "errors.h"

namespace tilelang {
namespace runtime {
namespace {

enum class Specials : uint8_t {
  kIeee,      // infinities and NaNs in the highest exponent
  kFiniteNan, // only the all-ones pattern is NaN, no infinity
  kUnsigned0, // NaN is the pattern of negative zero, no infinity
};

struct FloatFormat {
  uint8_t code;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
};

// Format definitions: OCP "8-bit Floating Point" and the fnuz variants of Graphcore/AMD
// (arXiv:2206.02915); e3m4, e4m3 and the 16-bit types follow IEEE 754 conventions.
constexpr FloatFormat kFormats[] = {
    {kDLBfloat, 8, 7, 127, Specials::kIeee},
    {kDLFloat8_e3m4, 3, 4, 3, Specials::kIeee},
    {kDLFloat8_e4m3, 4, 3, 7, Specials::kIeee},
    {kDLFloat8_e4m3b11fnuz, 4, 3, 11, Specials::kUnsigned0},
    {kDLFloat8_e4m3fn, 4, 3, 7, Specials::kFiniteNan},
    {kDLFloat8_e4m3fnuz, 4, 3, 8, Specials::kUnsigned0},
    {kDLFloat8_e5m2, 5, 2, 15, Specials::kIeee},
    {kDLFloat8_e5m2fnuz, 5, 2, 16, Specials::kUnsigned0},
};
constexpr FloatFormat kHalf{kDLFloat, 5, 10, 15, Specials::kIeee};

const FloatFormat* FindFormat(DLDataType type) {
  if (type.lanes != 1) return nullptr;
  if (type.code == kDLFloat) return type.bits == 16 ? &kHalf : nullptr;
  for (const FloatFormat& format : kFormats) {
    bool bits_match = type.bits == 1 + format.exponent_bits + format.mantissa_bits;
    if (format.code == type.code && bits_match) return &format;
  }
  return nullptr;
}

uint64_t NanOf(const FloatFormat& f, uint64_t sign) {
  int sign_shift = f.exponent_bits + f.mantissa_bits;
  if (f.specials == Specials::kUnsigned0) return uint64_t{1} << sign_shift;
  uint64_t exponent = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  uint64_t mantissa = f.specials == Specials::kFiniteNan ? (uint64_t{1} << f.mantissa_bits) - 1
                                                         : uint64_t{1} << (f.mantissa_bits - 1);
  return sign << sign_shift | exponent | mantissa;
}

/*! \brief Largest finite magnitude, as its bit pattern without the sign. */
uint64_t MaxFinite(const FloatFormat& f) {
  uint64_t all = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.specials == Specials::kUnsigned0) return all;
  if (f.specials == Specials::kFiniteNan) return all - 1;
  return (((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits) - 1;
}

/*! \brief Beyond the largest number: infinity, saturation (e4m3fn) or NaN (fnuz), as in torch. */
uint64_t OverflowOf(const FloatFormat& f, uint64_t sign) {
  if (f.specials == Specials::kUnsigned0) return NanOf(f, sign);
  uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  uint64_t magnitude = f.specials == Specials::kIeee ? infinity : MaxFinite(f);
  return sign << (f.exponent_bits + f.mantissa_bits) | magnitude;
}

uint64_t Encode(double value, const FloatFormat& f) {
  uint64_t sign = std::signbit(value) ? 1 : 0;
  if (std::isnan(value)) return NanOf(f, sign);
  if (std::isinf(value)) return OverflowOf(f, sign);
  double magnitude = std::fabs(value);
  int exponent = 2 - f.bias;  // that of the smallest normal number, for zero
  if (magnitude != 0) std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  int lowest = 1 - f.bias;           // exponent of the smallest normal number
  int scale = std::max(exponent - 1, lowest) - f.mantissa_bits;
  // The quotient is exact, so the one rounding (current mode: nearest even) happens here.
  auto steps = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
  // `steps` counts units of 2^scale; a carry into the next binade is absorbed by the addition.
  auto biased = static_cast<uint64_t>(scale + f.mantissa_bits - lowest);
  uint64_t bits = (biased << f.mantissa_bits) + steps;
  if (bits > MaxFinite(f)) return OverflowOf(f, sign);
  if (bits == 0 && f.specials == Specials::kUnsigned0) return 0;
  return sign << (f.exponent_bits + f.mantissa_bits) | bits;
}

/*! \brief e8m0fnu: 2^(bits - 127), 255 is NaN; torch rounds the mantissa half up, ties to even. */
uint64_t EncodePowerOfTwo(double value) {
  if (std::isnan(value) || std::isinf(value)) return 255;
  auto single = static_cast<float>(std::fabs(value));
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof(bits));
  uint64_t exponent = bits >> 23 & 0xff;
  uint32_t rest = bits & 0x7fffff;
  bool round = rest > 0x400000 || (rest == 0x400000 && exponent > 0);
  return exponent == 0xff ? 255 : exponent + (round ? 1 : 0);
}

bool IsFloat8(DLDataType type) {
  return type.bits == 8 && type.lanes == 1 && type.code >= kDLFloat8_e3m4 &&
         type.code <= kDLFloat8_e8m0fnu;
}

bool IsByte(DLDataType type) {
  return type.bits == 8 && type.lanes == 1 && (type.code == kDLInt || type.code == kDLUInt);
}

bool IsFp4Pair(DLDataType type) {
  return type.code == kDLFloat4_e2m1fn && type.bits == 4 && type.lanes == 2;
}

DLDataType Make(int code, int bits, int lanes = 1) {
  return DLDataType{static_cast<uint8_t>(code), static_cast<uint8_t>(bits),
                    static_cast<uint16_t>(lanes)};
}

/*! \brief The fp8 dtypes of torch that hold a declared fp8 dtype on a device. */
bool Float8Matches(uint8_t declared, uint8_t actual, DLDeviceType device) {
  if (declared == kDLFloat8_e4m3 && actual == kDLFloat8_e4m3fn) return true;
  if (declared == kDLFloat8_e4m3fn && actual == kDLFloat8_e4m3) return true;
  return device == kDLROCM && declared == kDLFloat8_e4m3 && actual == kDLFloat8_e4m3fnuz;
}

struct DeviceEntry {
  const char* name;
  DLDeviceType type;
};
constexpr DeviceEntry kDevices[] = {
    {"cpu", kDLCPU},         {"cuda", kDLCUDA},          {"cuda_host", kDLCUDAHost},
    {"opencl", kDLOpenCL},   {"vulkan", kDLVulkan},      {"metal", kDLMetal},
    {"mps", kDLMetal},       {"rocm", kDLROCM},          {"hip", kDLROCM},
    {"rocm_host", kDLROCMHost}, {"ext_dev", kDLExtDev},  {"cuda_managed", kDLCUDAManaged},
    {"oneapi", kDLOneAPI},   {"webgpu", kDLWebGPU},      {"hexagon", kDLHexagon},
};

}  // namespace

DeclaredType ParseType(const std::string& name) {
  DeclaredType declared{Make(kDLFloat, 32), name, 1};
  if (name == "tfloat32") return declared;  // a storage format of float32
  TVMFFIByteArray text{name.data(), name.size()};
  if (TVMFFIDataTypeFromString(&text, &declared.type) != 0) {
    TVMFFIObjectHandle ignored = nullptr;
    TVMFFIErrorMoveFromRaised(&ignored);
    TVMFFIObjectDecRef(ignored);
    Fail("ValueError", "unknown dtype '" + name + "'");
  }
  int bits = declared.type.bits;
  bool divides = bits == 1 || bits == 2 || bits == 4;
  bool is_bool = declared.type.code == kDLBool || (declared.type.code == kDLUInt && bits == 1);
  if (is_bool) declared.type = Make(kDLBool, 8, declared.type.lanes);
  if (divides && !is_bool && declared.type.lanes == 1) declared.pack = 8 / bits;
  return declared;
}

std::string TypeName(DLDataType type) {
  if (IsFp4Pair(type)) return "float4_e2m1fn_x2";
  TVMFFIAny text;
  if (TVMFFIDataTypeToString(&type, &text) != 0) return "unknown dtype";
  return tvm::ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&text).cast<tvm::ffi::String>();
}

TypeMatch MatchType(const DeclaredType& declared, DLDataType actual, DLDeviceType device) {
  DLDataType type = declared.type;
  if (SameType(type, actual)) return TypeMatch::kElementwise;
  if (declared.pack > 1) {
    bool pair = type.code == kDLFloat4_e2m1fn && IsFp4Pair(actual);
    return pair || IsByte(actual) ? TypeMatch::kPacked : TypeMatch::kNo;
  }
  if (HoldsLanes(declared, actual)) return TypeMatch::kLanes;
  if (IsFp4Pair(type)) return IsByte(actual) ? TypeMatch::kElementwise : TypeMatch::kNo;
  bool ok = false;
  if (type.lanes != 1) {
    ok = false;
  } else if (type.code == kDLBool) {
    ok = IsByte(actual);
  } else if (IsByte(type)) {
    ok = actual.code == kDLBool && actual.lanes == 1;
  } else if (IsFloat8(type)) {
    bool raw = actual.code == kDLUInt && IsByte(actual);
    ok = raw || (IsFloat8(actual) && Float8Matches(type.code, actual.code, device));
  } else if (type.code == kDLFloat6_e2m3fn || type.code == kDLFloat6_e3m2fn) {
    ok = IsByte(actual);
  }
  return ok ? TypeMatch::kElementwise : TypeMatch::kNo;
}

DLDataType StorageType(const DeclaredType& declared, DLDeviceType device) {
  DLDataType type = declared.type;
  if (declared.pack > 1) {
    if (type.code == kDLFloat4_e2m1fn) return Make(kDLFloat4_e2m1fn, 4, 2);
    return Make(type.code == kDLUInt ? kDLUInt : kDLInt, 8);
  }
  if (type.lanes != 1) return IsFp4Pair(type) ? type : Make(type.code, type.bits);
  switch (type.code) {
    case kDLFloat8_e4m3:
      return Make(device == kDLROCM ? kDLFloat8_e4m3fnuz : kDLFloat8_e4m3fn, 8);
    case kDLFloat8_e3m4:
    case kDLFloat8_e4m3b11fnuz:
    case kDLFloat6_e2m3fn:
    case kDLFloat6_e3m2fn:
      return Make(kDLUInt, 8);
    default:
      return type;
  }
}

bool IsFloatFormat(DLDataType type) {
  bool plain = type.code == kDLFloat && (type.bits == 32 || type.bits == 64) && type.lanes == 1;
  bool power = type.code == kDLFloat8_e8m0fnu && type.lanes == 1;
  return plain || power || FindFormat(type) != nullptr;
}

uint64_t EncodeFloat(double value, DLDataType type) {
  uint64_t bits = 0;
  if (type.code == kDLFloat && type.bits == 64) {
    std::memcpy(&bits, &value, sizeof(value));
  } else if (type.code == kDLFloat && type.bits == 32) {
    auto single = static_cast<float>(value);
    std::memcpy(&bits, &single, sizeof(single));
  } else if (type.code == kDLFloat8_e8m0fnu) {
    bits = EncodePowerOfTwo(value);
  } else {
    bits = Encode(value, *FindFormat(type));
  }
  return bits;
}

DLDeviceType ParseDevice(const std::string& name) {
  std::string kind = name.substr(0, name.find(':'));
  for (const DeviceEntry& entry : kDevices) {
    if (kind == entry.name) return entry.type;
  }
  Fail("ValueError", "unknown device '" + name + "'");
}

const char* DeviceName(DLDeviceType type) {
  for (const DeviceEntry& entry : kDevices) {
    if (entry.type == type) return entry.name;
  }
  return "unknown device";
}

bool DeviceMatches(DLDeviceType declared, DLDeviceType actual) {
  if (declared == actual) return true;
  if (declared == kDLCPU) return actual == kDLCUDAHost || actual == kDLROCMHost;
  return declared == kDLCUDA && actual == kDLCUDAManaged;
}

}  // namespace runtime
}  // namespace tilelang
