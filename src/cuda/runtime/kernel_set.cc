#include "kernel_set.h"

#include <algorithm>
#include <utility>

namespace tilelang {
namespace cuda {
namespace {

bool HasFlag(const runtime::KernelSpec& kernel, const char* flag) {
  return std::find(kernel.flags.begin(), kernel.flags.end(), flag) != kernel.flags.end();
}

Image MakeImage(const runtime::Plan& plan, const tvm::ffi::Bytes& code,
                const tvm::ffi::String& archs) {
  Image image{std::string(code.data(), code.size()), {}, archs, plan.name};
  for (const runtime::KernelSpec& kernel : plan.kernels) image.entries.push_back(kernel.entry);
  return image;
}

}  // namespace

KernelSet::KernelSet(const runtime::Plan& plan, const tvm::ffi::Bytes& code,
                     const tvm::ffi::String& archs,
                     const tvm::ffi::Array<tvm::ffi::String>& lines, std::string driver_path)
    : modules_(MakeImage(plan, code, archs)), driver_path_(std::move(driver_path)) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const runtime::KernelSpec& kernel = plan.kernels[k];
    std::string line = k < lines.size() ? std::string(lines[static_cast<int64_t>(k)]) : "";
    kinds_.push_back({line.empty() ? plan.name : line + ": " + plan.name,
                      kernel.entry,
                      {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]},
                      HasFlag(kernel, "cooperative"),
                      HasFlag(kernel, "pdl")});
  }
}

const Driver& KernelSet::LoadDriver() {
  const Driver& driver = Driver::Load(driver_path_, modules_.image().who);
  driver_.store(&driver, std::memory_order_release);
  return driver;
}

}  // namespace cuda
}  // namespace tilelang
