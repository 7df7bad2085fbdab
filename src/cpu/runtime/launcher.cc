/*!
 * \file launcher.cc
 * \brief Calls CPU kernels: binds arguments, allocates, and spreads the blocks over the pool.
 */
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "../../backend/common/binder.h"
#include "../../backend/common/errors.h"
#include "../../backend/common/outputs.h"
#include "../../backend/common/small_array.h"
#include "pool.h"

namespace tilelang {
namespace cpu {
namespace {

namespace ffi = tvm::ffi;
using runtime::Binder;
using runtime::Frame;
using runtime::KernelSpec;
using runtime::Plan;
using runtime::SmallArray;

// Waking a thread pays off from about this much work for it.
constexpr float kWorkPerThreadNs = 5000.0f;

/*! \brief One run of one kernel, shared by the threads that work on it. */
struct Job {
  TVMFFISafeCallType call;
  void* self;
  const uint64_t* slots;
  size_t scratch_bytes;
  std::atomic<bool> failed{false};
  TVMFFIObjectHandle error = nullptr;
  const char* failure = nullptr;  // used when there is no error object
};

void RecordFailure(Job* job, TVMFFIObjectHandle error, const char* failure) {
  if (job->failed.exchange(true)) {
    if (error != nullptr) TVMFFIObjectDecRef(error);  // only the first error is reported
    return;
  }
  job->error = error;
  job->failure = failure;
}

void RunRange(void* context, int64_t begin, int64_t end) {
  auto* job = static_cast<Job*>(context);
  if (job->failed.load(std::memory_order_relaxed)) return;
  ScratchScope scratch(job->scratch_bytes);
  if (job->scratch_bytes > 0 && scratch.data() == nullptr) {
    RecordFailure(job, nullptr, "out of memory for the scratch space of a kernel");
    return;
  }
  TVMFFIAny args[4] = {};
  args[0].type_index = kTVMFFIOpaquePtr;
  args[0].v_ptr = const_cast<uint64_t*>(job->slots);
  args[1].type_index = kTVMFFIInt;
  args[1].v_int64 = begin;
  args[2].type_index = kTVMFFIInt;
  args[2].v_int64 = end;
  args[3].type_index = kTVMFFIOpaquePtr;
  args[3].v_ptr = scratch.data();
  TVMFFIAny result = {};
  result.type_index = kTVMFFINone;
  if (job->call(job->self, args, 4, &result) != 0) {
    TVMFFIObjectHandle error = nullptr;
    TVMFFIErrorMoveFromRaised(&error);
    RecordFailure(job, error, "a kernel failed without an error message");
  } else if (result.type_index >= kTVMFFIStaticObjectBegin) {
    TVMFFIObjectDecRef(result.v_obj);
  }
}

[[noreturn]] void Rethrow(const Job& job) {
  if (job.error == nullptr) runtime::Fail("RuntimeError", job.failure);
  throw ffi::details::ObjectUnsafe::ObjectRefFromObjectPtr<ffi::Error>(
      ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(
          static_cast<TVMFFIObject*>(job.error)));
}

/*! \brief Host memory for the workspaces of one call; a launcher keeps the last block it used. */
class WorkspaceCache {
 public:
  ~WorkspaceCache() { std::free(block_.exchange(nullptr)); }

  /*! \brief 64-byte aligned; the size is kept in front of it. */
  char* Acquire(size_t bytes) {
    auto* block = static_cast<char*>(block_.exchange(nullptr));
    if (block != nullptr && Size(block) >= bytes) return block + kHeader;
    std::free(block);
    size_t rounded = (bytes + kHeader - 1) / kHeader * kHeader;
    block = static_cast<char*>(std::aligned_alloc(kHeader, kHeader + rounded));
    if (block == nullptr) runtime::Fail("MemoryError", "out of memory for a kernel workspace");
    Size(block) = rounded;
    return block + kHeader;
  }

  void Release(char* data) {
    char* block = data - kHeader;
    void* expected = nullptr;
    bool keep = Size(block) <= kKeepBelow && block_.compare_exchange_strong(expected, block);
    if (!keep) std::free(block);
  }

 private:
  static constexpr size_t kHeader = 64;
  static constexpr size_t kKeepBelow = size_t{64} << 20;
  static size_t& Size(char* block) { return *reinterpret_cast<size_t*>(block); }

  std::atomic<void*> block_{nullptr};
};

/*! \brief The workspaces of one call, freed with it. */
class Workspaces {
 public:
  Workspaces(const Binder& binder, WorkspaceCache* cache, Frame* frame) : cache_(cache) {
    size_t count = binder.plan().workspaces.size();
    if (count == 0) return;
    size_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      frame->workspaces[i] = total;
      size_t bytes = binder.EvalWorkspaceBytes(static_cast<int>(i), *frame);
      if (__builtin_add_overflow(total, bytes / 64 * 64 + 64, &total)) {
        runtime::Fail("MemoryError", "out of memory for a kernel workspace");
      }
    }
    data_ = cache->Acquire(total);
    for (size_t i = 0; i < count; ++i) {
      frame->workspaces[i] += reinterpret_cast<uintptr_t>(data_);
    }
  }
  ~Workspaces() {
    if (data_ != nullptr) cache_->Release(data_);
  }
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

 private:
  WorkspaceCache* cache_;
  char* data_ = nullptr;
};

/*! \brief A kernel entry point with what earlier calls have taught about its cost. */
class Worker {
 public:
  Worker(ffi::Function function, bool serial)
      : function_(std::move(function)), serial_(serial) {
    auto* object = ffi::details::ObjectUnsafe::RawObjectPtrFromObjectRef(function_);
    call_ = TVMFFIFunctionGetCellPtr(object)->safe_call;
    self_ = object;
  }
  Worker(Worker&& other) noexcept : Worker(other.function_, other.serial_) {}

  void Run(const KernelSpec& kernel, const uint64_t* slots, int64_t total) {
    Job job{call_, self_, slots, static_cast<size_t>(kernel.scratch_bytes)};
    int threads = total > 1 && !serial_ ? NumThreads() : 1;
    if (threads == 1) {
      RunRange(&job, 0, total);
    } else {
      RunTimed(&job, total, threads);
    }
    if (job.failed.load()) Rethrow(job);
  }

 private:
  /*! \brief Run on as many threads as the cost of the latest call makes worthwhile. */
  void RunTimed(Job* job, int64_t total, int threads) {
    using Clock = std::chrono::steady_clock;
    float work = block_ns_.load(std::memory_order_relaxed) * static_cast<float>(total);
    if (work > 0) {
      threads = static_cast<int>(std::min(static_cast<float>(threads), work / kWorkPerThreadNs));
    }
    auto start = Clock::now();
    if (threads < 2) {
      threads = 1;
      RunRange(job, 0, total);
    } else {
      ParallelFor(total, threads, RunRange, job);
    }
    auto elapsed = std::chrono::duration<float, std::nano>(Clock::now() - start).count();
    float spent = elapsed * static_cast<float>(std::min<int64_t>(threads, total));
    block_ns_.store(spent / static_cast<float>(total), std::memory_order_relaxed);
  }

  ffi::Function function_;
  bool serial_;  // blocks update tensors with plain read-modify-writes
  TVMFFISafeCallType call_;
  void* self_;
  std::atomic<float> block_ns_{0.0f};  // of the latest call; 0: never called
};

class Launcher {
 public:
  Launcher(Plan plan, const ffi::Array<ffi::Function>& workers) : binder_(std::move(plan)) {
    size_t expected = binder_.plan().kernels.size();
    if (workers.size() != expected) {
      runtime::Fail("ValueError", binder_.plan().name + ": the plan has " +
                                      std::to_string(expected) + " kernels, got " +
                                      std::to_string(workers.size()) + " workers");
    }
    workers_.reserve(expected);
    for (size_t k = 0; k < expected; ++k) {
      const std::vector<std::string>& flags = binder_.plan().kernels[k].flags;
      bool serial = std::find(flags.begin(), flags.end(), "serial") != flags.end();
      workers_.emplace_back(workers[static_cast<int64_t>(k)], serial);
    }
  }

  ffi::Any Call(const ffi::AnyView* args, int num_args) {
    const Plan& plan = binder_.plan();
    Frame frame(plan);
    binder_.Bind(args, num_args, &frame);
    SmallArray<int64_t, 8> totals(plan.kernels.size());
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      int64_t grid[3];
      totals[k] = binder_.EvalGrid(plan.kernels[k], frame, grid);
    }
    runtime::Outputs outputs(binder_, &frame);
    Workspaces workspaces(binder_, &workspace_cache_, &frame);
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      if (totals[k] == 0) continue;
      SmallArray<uint64_t, 32> slots(plan.kernels[k].args.size());
      binder_.FillSlots(plan.kernels[k], frame, slots.data());
      workers_[k].Run(plan.kernels[k], slots.data(), totals[k]);
    }
    return outputs.Take();
  }

 private:
  Binder binder_;
  std::vector<Worker> workers_;
  WorkspaceCache workspace_cache_;
};

ffi::Function MakeCpuLauncher(const ffi::String& plan_json,
                              const ffi::Array<ffi::Function>& workers) {
  auto launcher = std::make_shared<Launcher>(Plan::FromJson(plan_json), workers);
  return ffi::Function::FromPacked(
      [launcher](const ffi::AnyView* args, int32_t num_args, ffi::Any* result) {
        *result = launcher->Call(args, num_args);
      });
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tl.runtime.make_cpu_launcher", MakeCpuLauncher)
      .def("tl.runtime.set_num_threads", [](int64_t n) { SetNumThreads(static_cast<int>(n)); })
      .def("tl.runtime.get_num_threads", [] { return static_cast<int64_t>(NumThreads()); });
}

}  // namespace cpu
}  // namespace tilelang
