#include "allocation.h"

#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <string>

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

}  // namespace

DLPackManagedTensorAllocator FindAllocator(const Plan& plan, const char* what) {
  DLPackManagedTensorAllocator allocator = TVMFFIEnvGetDLPackManagedTensorAllocator();
  const DLPackExchangeAPI* torch = TorchExchangeApi();
  if (allocator == nullptr && torch != nullptr && PythonAvailable()) {
    allocator = torch->managed_tensor_allocator;
  }
  if (allocator == nullptr) {
    Fail("RuntimeError", plan.name + ": " + what +
                             " cannot be allocated without torch 2.10 or newer, or a tensor "
                             "argument of a framework with the DLPack exchange API");
  }
  return allocator;
}

DLManagedTensorVersioned* AllocateTensor(DLPackManagedTensorAllocator allocator,
                                         DLTensor* prototype, const Plan& plan,
                                         const std::string& what, const DLDataType* fallback) {
  AllocationError error;
  DLManagedTensorVersioned* out = nullptr;
  int code = allocator(prototype, &out, &error, RecordError);
  if (code != 0 && fallback != nullptr) {
    prototype->dtype = *fallback;
    code = allocator(prototype, &out, &error, RecordError);
  }
  if (code != 0) {
    Fail(error.kind.c_str(), plan.name + ": cannot allocate " + what + ": " + error.message);
  }
  return out;
}

ffi::Tensor ToFfiTensor(DLManagedTensorVersioned* managed) {
  TVMFFIObjectHandle handle = nullptr;
  if (TVMFFITensorFromDLPackVersioned(managed, 0, 0, &handle) != 0) {
    if (managed->deleter != nullptr) managed->deleter(managed);
    Fail("RuntimeError", "cannot wrap an allocated tensor");
  }
  return ffi::Tensor(ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::TensorObj>(
      static_cast<TVMFFIObject*>(handle)));
}

std::vector<ffi::Tensor> AllocateWorkspaces(const Binder& binder, Frame* frame) {
  std::vector<ffi::Tensor> tensors;
  const Plan& plan = binder.plan();
  if (plan.workspaces.empty()) return tensors;
  DLPackManagedTensorAllocator allocator = FindAllocator(plan, "workspaces");
  for (size_t i = 0; i < plan.workspaces.size(); ++i) {
    int64_t bytes = binder.EvalWorkspaceBytes(static_cast<int>(i), *frame);
    DLTensor prototype{};
    prototype.device = frame->device;
    prototype.dtype = DLDataType{kDLUInt, 8, 1};
    prototype.ndim = 1;
    prototype.shape = &bytes;
    std::string what = "a workspace of " + std::to_string(bytes) + " bytes";
    tensors.push_back(ToFfiTensor(AllocateTensor(allocator, &prototype, plan, what)));
    const ffi::Tensor& memory = tensors.back();
    frame->workspaces[i] = reinterpret_cast<uintptr_t>(memory.data_ptr()) + memory.byte_offset();
  }
  return tensors;
}

}  // namespace runtime
}  // namespace tilelang
