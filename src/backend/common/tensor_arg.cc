#include "tensor_arg.h"

#include <algorithm>

namespace tilelang {
namespace runtime {

int64_t TensorArg::StoredStride(int dim) const {
  if (tensor_.strides != nullptr) return tensor_.strides[dim];
  int64_t stride = 1;
  for (int i = dim + 1; i < tensor_.ndim; ++i) stride *= tensor_.shape[i];
  return stride;
}

int64_t TensorArg::Stride(int dim) const {
  int64_t stored = StoredStride(dim);
  if (lanes_ > 1) return stored / lanes_;
  return dim + 1 == tensor_.ndim ? stored : stored * pack_;
}

bool TensorArg::LanesFit() const {
  if (lanes_ == 1) return true;
  int last = tensor_.ndim - 1;
  if (last < 0 || tensor_.shape[last] != lanes_ || StoredStride(last) != 1) return false;
  for (int dim = 0; dim < last; ++dim) {
    if (!StrideIsFree(dim) && StoredStride(dim) % lanes_ != 0) return false;
  }
  return true;
}

bool TensorArg::IsEmpty() const {
  return std::any_of(tensor_.shape, tensor_.shape + tensor_.ndim,
                     [](int64_t extent) { return extent == 0; });
}

bool TensorArg::IsCompact() const {
  if (tensor_.strides == nullptr) return true;
  int64_t expected = 1;
  for (int i = tensor_.ndim - 1; i >= 0; --i) {
    if (tensor_.shape[i] != 1 && tensor_.strides[i] != expected) return IsEmpty();
    expected *= tensor_.shape[i];
  }
  return true;
}

std::string TensorArg::FormatShape() const {
  std::string text = "[";
  for (int i = 0; i < tensor_.ndim; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(tensor_.shape[i]);
  }
  text += "]";
  if (pack_ == 1) return text;
  return text + " of " + TypeName(tensor_.dtype) + ", each holding " + std::to_string(pack_) +
         " x " + param_.dtype.name;
}

std::string TensorArg::FormatStrides() const {
  std::string text = "[";
  for (int i = 0; i < tensor_.ndim; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(StoredStride(i));
  }
  return text + "]";
}

}  // namespace runtime
}  // namespace tilelang
