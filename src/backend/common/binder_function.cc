/*!
 * \file binder_function.cc
 * \brief The binder as a function, for adapters that launch from Python.
 */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>
#include <utility>
#include <vector>

#include "allocation.h"
#include "binder.h"
#include "errors.h"
#include "outputs.h"
#include "python_api.h"

namespace tilelang {
namespace runtime {
namespace {

namespace ffi = tvm::ffi;

using Values = ffi::Array<int64_t>;
using List = ffi::Array<ffi::Any>;

/*! \brief Slots are unsigned words; FFI integers are signed, so the bits are kept as they are. */
int64_t SlotBits(uint64_t slot) { return static_cast<int64_t>(slot); }

/*! \brief [entry, grid, block, dynamic shared bytes, slots] of one kernel. */
List BindKernel(const Binder& binder, const KernelSpec& kernel, const Frame& frame) {
  int64_t grid[3];
  binder.EvalGrid(kernel, frame, grid);
  std::vector<uint64_t> slots(kernel.args.size());
  binder.FillSlots(kernel, frame, slots.data());
  Values block;
  for (const IntExpr& extent : kernel.block) block.push_back(extent.Eval(frame.symbols.data()));
  Values slot_bits;
  for (uint64_t slot : slots) slot_bits.push_back(SlotBits(slot));
  return {ffi::String(kernel.entry), Values{grid[0], grid[1], grid[2]}, block,
          kernel.dyn_smem.Eval(frame.symbols.data()), slot_bits};
}

/*! \brief [symbols, device type and id, kernels, workspaces, result]. */
List BindCall(const Binder& binder, const ffi::AnyView* args, int num_args) {
  const Plan& plan = binder.plan();
  Frame frame(plan);
  binder.Bind(args, num_args, &frame);
  Outputs outputs(binder, &frame);
  List workspaces;
  for (const ffi::Tensor& memory : AllocateWorkspaces(binder, &frame)) workspaces.push_back(memory);
  List kernels;
  for (const KernelSpec& kernel : plan.kernels) kernels.push_back(BindKernel(binder, kernel, frame));
  Values symbols;
  for (size_t i = 0; i < frame.symbols.size(); ++i) symbols.push_back(frame.symbols[i]);
  Values device{static_cast<int64_t>(frame.device.device_type), frame.device.device_id};
  return {symbols, device, kernels, workspaces, outputs.Take()};
}

ffi::Function MakeBinder(const ffi::String& plan_json) {
  auto binder = std::make_shared<Binder>(Plan::FromJson(plan_json));
  return ffi::Function::FromPacked(
      [binder](const ffi::AnyView* args, int32_t num_args, ffi::Any* result) {
        *result = BindCall(*binder, args, num_args);
      });
}

/*! \brief Throw the error that a direct call of a function has left behind in this thread. */
void RaisePending() {
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == nullptr) Fail("RuntimeError", "a call failed without an error message");
  throw ffi::details::ObjectUnsafe::ObjectRefFromObjectPtr<ffi::Error>(
      ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(
          static_cast<TVMFFIObject*>(error)));
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tl.runtime.make_binder", MakeBinder)
      .def("tl.runtime.raise_pending", RaisePending)
      .def("tl.runtime.set_torch_exchange_api", SetTorchExchangeApi);
}

}  // namespace runtime
}  // namespace tilelang
