#include "outputs.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <string>
#include <utility>

#include "allocation.h"
#include "python_api.h"

namespace tilelang {
namespace runtime {

namespace ffi = tvm::ffi;

Outputs::Outputs(const Binder& binder, Frame* frame) : plan_(binder.plan()), binder_(binder) {
  if (plan_.num_inputs == static_cast<int>(plan_.params.size())) return;
  const DLPackExchangeAPI* torch = TorchExchangeApi();
  allocator_ = TVMFFIEnvGetDLPackManagedTensorAllocator();
  bool from_torch = torch != nullptr && PythonAvailable() &&
                    (allocator_ == nullptr || allocator_ == torch->managed_tensor_allocator);
  to_python_ = from_torch && (allocator_ == nullptr || plan_.returns_list);
  if (from_torch) allocator_ = torch->managed_tensor_allocator;
  if (allocator_ == nullptr) allocator_ = FindAllocator(plan_, "outputs");
  tensors_.resize(plan_.params.size());
  for (int i = 0; i < static_cast<int>(plan_.params.size()); ++i) {
    if (plan_.params[i].is_output) Allocate(i, frame);
  }
}

Outputs::~Outputs() {
  for (DLManagedTensorVersioned* tensor : tensors_) {
    if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
  }
}

void Outputs::Allocate(int param, Frame* frame) {
  const ParamSpec& spec = plan_.params[param];
  DLDataType stored = StorageType(spec.dtype, spec.device);
  bool lanes = HoldsLanes(spec.dtype, stored);
  SmallArray<int64_t, 8> shape(spec.shape.size() + (lanes ? 1 : 0));
  binder_.EvalOutputShape(param, *frame, shape.data());
  int pack = spec.dtype.pack;
  if (pack > 1 && shape.size() > 0) {
    int64_t& last = shape[shape.size() - 1];
    last = (last + pack - 1) / pack;
  }
  if (lanes) shape[shape.size() - 1] = spec.dtype.type.lanes;
  DLTensor prototype{};
  prototype.device = {spec.device, frame->device.device_id};
  prototype.dtype = stored;
  prototype.ndim = static_cast<int>(shape.size());
  prototype.shape = shape.data();
  // A torch without float4 pairs keeps them as bytes.
  const DLDataType bytes{kDLInt, 8, 1};
  bool pairs = pack > 1 && prototype.dtype.lanes == 2;
  std::string what = "output '" + spec.name + "' of dtype " + spec.dtype.name;
  tensors_[param] = AllocateTensor(allocator_, &prototype, plan_, what, pairs ? &bytes : nullptr);
  const DLTensor& tensor = tensors_[param]->dl_tensor;
  frame->values[param] = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
}

ffi::Any Outputs::Take() {
  if (plan_.returns.empty()) return nullptr;
  if (to_python_) {
    std::vector<DLManagedTensorVersioned*> taken;
    for (int param : plan_.returns) taken.push_back(std::exchange(tensors_[param], nullptr));
    return TensorsToPython(taken, plan_.returns_list);
  }
  ffi::Array<ffi::Any> list;
  for (int param : plan_.returns) {
    ffi::Tensor tensor = ToFfiTensor(std::exchange(tensors_[param], nullptr));
    if (!plan_.returns_list) return tensor;
    list.push_back(tensor);
  }
  return list;
}

}  // namespace runtime
}  // namespace tilelang
