/*!
 * \file dtype.h
 * \brief Element types of arguments: names, storage in torch tensors, scalar encoding.
 */
#ifndef TILELANG_BACKEND_COMMON_DTYPE_H_
#define TILELANG_BACKEND_COMMON_DTYPE_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>

namespace tilelang {
namespace runtime {

/*! \brief A dtype as declared in the launch plan. */
struct DeclaredType {
  DLDataType type;
  std::string name;
  /*! \brief Logical elements per element of an 8-bit (packed) tensor; 1 unless sub-byte. */
  int pack = 1;
};

/*! \brief Parse a dtype name; throws ValueError for an unknown one. */
DeclaredType ParseType(const std::string& name);

/*! \brief Name of a dtype the way TileLang and torch spell it. */
std::string TypeName(DLDataType type);

inline bool SameType(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/*! \brief True if a tensor of dtype `actual` holds the vectors of `declared` lane by lane. */
inline bool HoldsLanes(const DeclaredType& declared, DLDataType actual) {
  const DLDataType& type = declared.type;
  return type.lanes > 1 && actual.lanes == 1 && type.code == actual.code &&
         type.bits == actual.bits && type.bits >= 8;
}

/*! \brief How an actual tensor may hold a declared dtype. */
enum class TypeMatch : uint8_t {
  kNo,
  kElementwise,  // one stored element per declared element
  kLanes,        // one stored element per lane, the lanes as last dimension
  kPacked,       // `pack` declared elements per stored element, along the last dimension
};

/*! \brief Decide whether a tensor of dtype `actual` on `device` can stand for `declared`. */
TypeMatch MatchType(const DeclaredType& declared, DLDataType actual, DLDeviceType device);

/*! \brief The dtype torch uses to hold `declared` (packed if `pack` > 1, one lane of a vector). */
DLDataType StorageType(const DeclaredType& declared, DLDeviceType device);

/*!
 * \brief Encode a number in a float format, rounding once to nearest even.
 *
 * Overflow gives infinity where the format has one; float8_e4m3fn saturates and the fnuz formats
 * give NaN, as torch does.
 */
uint64_t EncodeFloat(double value, DLDataType type);

/*! \brief True if `EncodeFloat` knows the format. */
bool IsFloatFormat(DLDataType type);

/*! \brief Device type of a name such as "cpu" or "cuda:0"; throws ValueError if unknown. */
DLDeviceType ParseDevice(const std::string& name);

/*! \brief Name of a device type. */
const char* DeviceName(DLDeviceType type);

/*! \brief True if memory of `actual` can be used where `declared` is expected. */
bool DeviceMatches(DLDeviceType declared, DLDeviceType actual);

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_DTYPE_H_
