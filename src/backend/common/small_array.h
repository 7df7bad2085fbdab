/*!
 * \file small_array.h
 * \brief Fixed-size array that lives on the stack when it is short.
 */
#ifndef TILELANG_BACKEND_COMMON_SMALL_ARRAY_H_
#define TILELANG_BACKEND_COMMON_SMALL_ARRAY_H_

#include <cstddef>
#include <memory>

namespace tilelang {
namespace runtime {

/*! \brief `size` zero-initialised elements; on the heap only if there are more than `kInline`. */
template <typename T, size_t kInline>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size > kInline) heap_.reset(new T[size]);
    data_ = size > kInline ? heap_.get() : inline_;
    for (size_t i = 0; i < size; ++i) data_[i] = T{};
  }
  SmallArray(const SmallArray&) = delete;
  SmallArray& operator=(const SmallArray&) = delete;

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  T* data_;
  T inline_[kInline];
  std::unique_ptr<T[]> heap_;
};

}  // namespace runtime
}  // namespace tilelang
#endif  // TILELANG_BACKEND_COMMON_SMALL_ARRAY_H_
