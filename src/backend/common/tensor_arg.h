/*!
 * \file tensor_arg.h
 * \brief A tensor argument seen in elements of its declared dtype.
 */
#ifndef TILELANG_BACKEND_COMMON_TENSOR_ARG_H_
#define TILELANG_BACKEND_COMMON_TENSOR_ARG_H_

#include <cstdint>
#include <string>

#include "plan.h"

namespace tilelang {
namespace runtime {

/*!
 * \brief View of a DLTensor that undoes the packing of sub-byte dtypes.
 *
 * torch has no int4 and stores float4 in pairs: a tensor of 64 declared elements along the last
 * dimension arrives with 32 stored ones. Neither has it vectors: those arrive as scalars, with the
 * lanes as one more dimension at the end.
 */
class TensorArg {
 public:
  TensorArg(const ParamSpec& param, const DLTensor& tensor)
      : param_(param),
        tensor_(tensor),
        pack_(SameType(param.dtype.type, tensor.dtype) ? 1 : param.dtype.pack),
        lanes_(HoldsLanes(param.dtype, tensor.dtype) ? param.dtype.type.lanes : 1) {}

  /*! \brief Dimensions of declared elements. */
  int ndim() const { return lanes_ > 1 ? tensor_.ndim - 1 : tensor_.ndim; }
  /*! \brief False if the lanes are not the last dimension, or the rest not whole vectors apart. */
  bool LanesFit() const;
  /*! \brief Declared elements along `dim`; the largest possible value if packed. */
  int64_t Extent(int dim) const {
    return IsPackedDim(dim) ? tensor_.shape[dim] * pack_ : tensor_.shape[dim];
  }
  /*! \brief True if `expected` declared elements are stored along `dim`. */
  bool ExtentIs(int dim, int64_t expected) const {
    int64_t stored = IsPackedDim(dim) ? (expected + pack_ - 1) / pack_ : expected;
    return stored == tensor_.shape[dim];
  }
  /*! \brief Stride in declared elements. */
  int64_t Stride(int dim) const;
  /*! \brief True if no address depends on the stride of `dim`. */
  bool StrideIsFree(int dim) const { return tensor_.shape[dim] <= 1 || IsEmpty(); }
  bool IsEmpty() const;
  bool IsCompact() const;
  /*! \brief "[32, 64]", of the stored elements, with a note if they are packed. */
  std::string FormatShape() const;
  std::string FormatStrides() const;

 private:
  bool IsPackedDim(int dim) const { return pack_ > 1 && dim + 1 == tensor_.ndim; }
  int64_t StoredStride(int dim) const;

  const ParamSpec& param_;
  const DLTensor& tensor_;
  int pack_;
  int lanes_;
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_TENSOR_ARG_H_
