#include "outputs.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <string>
#include <utility>

#include "errors.h"
#include "python_api.h"

namespace tilelang {
namespace runtime {
namespace {

namespace ffi = tvm::ffi;

struct AllocationError {
  std::string kind = "RuntimeError";
  std::string message = "unknown reason";
};

void RecordError(void* context, const char* kind, const char* message) {
  auto* error = static_cast<AllocationError*>(context);
  error->kind = kind;
  error->message = message;
  error->message.resize(std::min(error->message.find('\n'), error->message.size()));
}

/*! \brief Wrap an allocated tensor; takes ownership, also on failure. */
ffi::Tensor ToFfiTensor(DLManagedTensorVersioned* managed) {
  TVMFFIObjectHandle handle = nullptr;
  if (TVMFFITensorFromDLPackVersioned(managed, 0, 0, &handle) != 0) {
    if (managed->deleter != nullptr) managed->deleter(managed);
    Fail("RuntimeError", "cannot wrap an output tensor");
  }
  return ffi::Tensor(ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::TensorObj>(
      static_cast<TVMFFIObject*>(handle)));
}

}  // namespace

Outputs::Outputs(const Binder& binder, Frame* frame) : plan_(binder.plan()), binder_(binder) {
  if (plan_.num_inputs == static_cast<int>(plan_.params.size())) return;
  const DLPackExchangeAPI* torch = TorchExchangeApi();
  allocator_ = TVMFFIEnvGetDLPackManagedTensorAllocator();
  bool from_torch = torch != nullptr && PythonAvailable() &&
                    (allocator_ == nullptr || allocator_ == torch->managed_tensor_allocator);
  to_python_ = from_torch && (allocator_ == nullptr || plan_.returns_list);
  if (from_torch) allocator_ = torch->managed_tensor_allocator;
  if (allocator_ == nullptr) {
    Fail("RuntimeError", plan_.name +
                             ": outputs cannot be allocated without torch 2.10 or newer, or a "
                             "tensor argument of a framework with the DLPack exchange API");
  }
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
  AllocationError error;
  DLManagedTensorVersioned** out = &tensors_[param];
  int code = allocator_(&prototype, out, &error, RecordError);
  if (code != 0 && pack > 1 && prototype.dtype.lanes == 2) {
    // A torch without float4 pairs keeps them as bytes.
    prototype.dtype = DLDataType{kDLInt, 8, 1};
    code = allocator_(&prototype, out, &error, RecordError);
  }
  if (code != 0) {
    *out = nullptr;
    Fail(error.kind.c_str(), plan_.name + ": cannot allocate output '" + spec.name +
                                 "' of dtype " + spec.dtype.name + ": " + error.message);
  }
  const DLTensor& tensor = (*out)->dl_tensor;
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
