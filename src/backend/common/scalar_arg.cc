#include "scalar_arg.h"

#include <tvm/ffi/c_api.h>

#include <cstring>
#include <optional>

#include "argument_error.h"
#include "python_api.h"

namespace tilelang {
namespace runtime {
namespace {

using tvm::ffi::AnyView;
using tvm::ffi::TypeIndex;

/*! \brief An integer argument: 64 value bits, and which of int64 and uint64 hold it. */
struct Integer {
  uint64_t bits = 0;
  bool fits_signed = true;
  bool fits_unsigned = true;
};

Integer FromSigned(int64_t value) { return {static_cast<uint64_t>(value), true, value >= 0}; }

/*! \brief Big integers are little-endian arrays of 64-bit words in two's complement. */
Integer FromBigInt(const AnyView& arg) {
  TVMFFIAny raw = arg.CopyToTVMFFIAny();
  TVMFFIByteArray content = TVMFFIBigIntGetContentByteArray(&raw);
  uint64_t low = 0;
  uint64_t high = 0;
  std::memcpy(&low, content.data, sizeof(low));
  bool two_words = content.size == 2 * sizeof(uint64_t);
  if (two_words) std::memcpy(&high, content.data + sizeof(low), sizeof(high));
  return {low, false, two_words && high == 0};
}

std::optional<Integer> AsInteger(const AnyView& arg) {
  TVMFFIAny raw = arg.CopyToTVMFFIAny();
  switch (raw.type_index) {
    case TypeIndex::kTVMFFIInt: return FromSigned(raw.v_int64);
    case TypeIndex::kTVMFFIBool: return FromSigned(raw.v_int64 != 0);
    case TypeIndex::kTVMFFIBigInt: return FromBigInt(arg);
    default: break;
  }
  if (auto value = PythonAsBool(arg)) return FromSigned(*value);
  return std::nullopt;
}

bool FitsType(const Integer& value, DLDataType type) {
  if (type.bits >= 64) return type.code == kDLUInt ? value.fits_unsigned : value.fits_signed;
  if (!value.fits_signed) return false;
  auto number = static_cast<int64_t>(value.bits);
  if (type.code == kDLUInt) return number >= 0 && number < (int64_t{1} << type.bits);
  int64_t limit = int64_t{1} << (type.bits - 1);
  return number >= -limit && number < limit;
}

std::string ToString(const Integer& value) {
  if (value.fits_signed) return std::to_string(static_cast<int64_t>(value.bits));
  return value.fits_unsigned ? std::to_string(value.bits) : "a number beyond 64 bits";
}

[[noreturn]] void WrongKind(const Plan& plan, int param, const AnyView& arg) {
  FailArgumentType(plan, param, "expected " + Expectation(plan, plan.params[param]) + ", got " +
                                    Describe(arg));
}

std::optional<double> AsDouble(const AnyView& arg) {
  TVMFFIAny raw = arg.CopyToTVMFFIAny();
  if (raw.type_index == TypeIndex::kTVMFFIFloat) return raw.v_float64;
  if (auto integer = AsInteger(arg)) {
    if (integer->fits_signed) return static_cast<double>(static_cast<int64_t>(integer->bits));
    if (integer->fits_unsigned) return static_cast<double>(integer->bits);
    return std::nullopt;
  }
  return PythonAsDouble(arg);
}

}  // namespace

const DLTensor* AsTensor(const AnyView& arg) {
  TVMFFIAny raw = arg.CopyToTVMFFIAny();
  if (raw.type_index == TypeIndex::kTVMFFITensor) return TVMFFITensorGetDLTensorPtr(raw.v_obj);
  if (raw.type_index == TypeIndex::kTVMFFIDLTensorPtr) return static_cast<DLTensor*>(raw.v_ptr);
  return nullptr;
}

uint64_t ScalarSlot(const Plan& plan, int param, const AnyView& arg) {
  DLDataType type = plan.params[param].dtype.type;
  if (IsFloatFormat(type)) {
    auto value = AsDouble(arg);
    if (!value) WrongKind(plan, param, arg);
    return EncodeFloat(*value, type);
  }
  auto value = AsInteger(arg);
  if (!value) WrongKind(plan, param, arg);
  if (type.code == kDLBool) return value->bits != 0;
  if (!FitsType(*value, type)) {
    FailArgumentValue(plan, param,
                      ToString(*value) + " does not fit " + plan.params[param].dtype.name, nullptr);
  }
  return value->bits;
}

uint64_t PointerSlot(const Plan& plan, int param, const AnyView& arg) {
  if (const DLTensor* tensor = AsTensor(arg)) return AddressOf(*tensor);
  TVMFFIAny raw = arg.CopyToTVMFFIAny();
  switch (raw.type_index) {
    case TypeIndex::kTVMFFINone: return 0;
    case TypeIndex::kTVMFFIOpaquePtr: return reinterpret_cast<uintptr_t>(raw.v_ptr);
    case TypeIndex::kTVMFFIInt: return static_cast<uint64_t>(raw.v_int64);
    case TypeIndex::kTVMFFIBigInt: {
      Integer value = FromBigInt(arg);
      if (value.fits_unsigned) return value.bits;
      break;
    }
    default: break;
  }
  WrongKind(plan, param, arg);
}

}  // namespace runtime
}  // namespace tilelang
