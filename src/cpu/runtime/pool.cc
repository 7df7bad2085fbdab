#include "pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

#include "fp_environment.h"

namespace tilelang {
namespace cpu {
namespace {

constexpr size_t kStackBytes = size_t{16} << 20;
// How long an idle helper polls before it sleeps: about the cost of one wake-up.
constexpr int kIdleSpins = 2000;
constexpr int kMaxHelpers = 1023;
// Chunks per thread: enough to level out uneven blocks, few enough to keep neighbours together.
constexpr int64_t kChunksPerThread = 8;

inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int AvailableCpus() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

/*!
 * \brief Who may join the current job, in one word so that joining is one compare-exchange.
 *
 * A closed gate with nobody running means that the job fields may be rewritten.
 */
struct Gate {
  static constexpr uint64_t kRunning = 1;  // helpers inside the job
  static constexpr uint64_t kJoined = uint64_t{1} << 12;
  static constexpr uint64_t kLimit = uint64_t{1} << 24;
  static constexpr uint64_t kOpen = uint64_t{1} << 36;
  static constexpr uint64_t kEpoch = uint64_t{1} << 37;
  static constexpr uint64_t kCountMask = (1 << 12) - 1;

  static uint64_t Running(uint64_t g) { return g & kCountMask; }
  static uint64_t Joined(uint64_t g) { return g / kJoined & kCountMask; }
  static uint64_t Limit(uint64_t g) { return g / kLimit & kCountMask; }
  static uint64_t Epoch(uint64_t g) { return g / kEpoch; }
  static bool Admits(uint64_t g, uint64_t last_epoch) {
    return (g & kOpen) != 0 && Joined(g) < Limit(g) && Epoch(g) != last_epoch;
  }
};

class Pool {
 public:
  /*! \brief The pool of this process; made on first use and again in a forked child. */
  static Pool* Global() {
    static const int registered = pthread_atfork(nullptr, nullptr, &Pool::ForgetInChild);
    (void)registered;
    Pool* pool = instance_.load(std::memory_order_acquire);
    if (pool != nullptr) return pool;
    auto* fresh = new Pool();
    if (instance_.compare_exchange_strong(pool, fresh)) return fresh;
    delete fresh;
    return pool;
  }

  /*! \brief False if another thread has the pool. */
  bool TryRun(int64_t total, int num_threads, RangeFn fn, void* context) {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    int helpers = EnsureHelpers(std::min(num_threads - 1, kMaxHelpers));
    fn_ = fn;
    context_ = context;
    total_ = total;
    chunk_ = std::max<int64_t>(1, total / ((helpers + 1) * kChunksPerThread));
    fp_control_ = GetFpControl();
    next_.store(0, std::memory_order_relaxed);
    uint64_t epoch = ++epoch_;
    gate_.store(epoch * Gate::kEpoch | Gate::kOpen | static_cast<uint64_t>(helpers) * Gate::kLimit);
    Wake(helpers);
    RunChunks();
    Finish();
    busy_.clear(std::memory_order_release);
    return true;
  }

 private:
  Pool() : spins_(AvailableCpus() > 1 ? kIdleSpins : 0) {}

  /*! \brief The threads of the parent do not exist here; its pool is abandoned as it was. */
  static void ForgetInChild() { instance_.store(nullptr, std::memory_order_release); }

  /*! \brief Start helpers until there are `wanted`; returns how many can be used. */
  int EnsureHelpers(int wanted) {
    while (num_helpers_ < wanted && StartHelper()) ++num_helpers_;
    return std::min(num_helpers_, wanted);
  }

  bool StartHelper() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    // Signals belong to the threads of the program.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    pthread_t thread;
    int code = pthread_create(&thread, &attributes, &Pool::HelperMain, this);
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    pthread_attr_destroy(&attributes);
    return code == 0;
  }

  static void* HelperMain(void* pool);

  void RunChunks() {
    for (;;) {
      int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= total_) return;
      fn_(context_, begin, std::min(begin + chunk_, total_));
    }
  }

  bool Join(uint64_t* last_epoch) {
    uint64_t gate = gate_.load(std::memory_order_acquire);
    while (Gate::Admits(gate, *last_epoch)) {
      if (gate_.compare_exchange_weak(gate, gate + Gate::kRunning + Gate::kJoined,
                                      std::memory_order_acq_rel)) {
        *last_epoch = Gate::Epoch(gate);
        return true;
      }
    }
    return false;
  }

  void Leave() {
    uint64_t before = gate_.fetch_sub(Gate::kRunning);
    bool last = Gate::Running(before) == 1 && (before & Gate::kOpen) == 0;
    if (last && owner_sleeps_.load()) {
      std::lock_guard<std::mutex> lock(mutex_);
      finished_.notify_one();
    }
  }

  void Wake(int helpers) {
    int sleeping = sleepers_.load();
    if (sleeping == 0 || helpers == 0) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (helpers >= sleeping) {
      work_.notify_all();
    } else {
      for (int i = 0; i < helpers; ++i) work_.notify_one();
    }
  }

  /*!
   * \brief Sleep until there may be work. The job may be over by then; the helper polls again all
   * the same, because another short job is likely to follow.
   */
  void Sleep(uint64_t last_epoch) {
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    if (!Gate::Admits(gate_.load(), last_epoch)) work_.wait(lock);
    sleepers_.fetch_sub(1);
  }

  /*! \brief Close the job and wait for the helpers that are still inside it. */
  void Finish() {
    uint64_t gate = gate_.fetch_and(~Gate::kOpen);
    if (Gate::Running(gate) == 0) return;
    auto done = [this] { return Gate::Running(gate_.load()) == 0; };
    for (int i = 0; i < spins_; ++i) {
      if (done()) return;
      Relax();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    owner_sleeps_.store(true);
    finished_.wait(lock, done);
    owner_sleeps_.store(false);
  }

  static std::atomic<Pool*> instance_;

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  const int spins_;
  int num_helpers_ = 0;
  uint64_t epoch_ = 0;

  alignas(64) std::atomic<uint64_t> gate_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) RangeFn fn_ = nullptr;
  void* context_ = nullptr;
  int64_t total_ = 0;
  int64_t chunk_ = 1;
  FpControl fp_control_{};

  alignas(64) std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable finished_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> owner_sleeps_{false};
};

std::atomic<Pool*> Pool::instance_{nullptr};

thread_local bool in_parallel = false;

void* Pool::HelperMain(void* self) {
  auto* pool = static_cast<Pool*>(self);
  in_parallel = true;
  uint64_t last_epoch = 0;
  for (;;) {
    bool joined = pool->Join(&last_epoch);
    for (int i = 0; !joined && i < pool->spins_; ++i) {
      Relax();
      joined = pool->Join(&last_epoch);
    }
    if (!joined) {
      pool->Sleep(last_epoch);
      continue;
    }
    SetFpControl(pool->fp_control_);
    pool->RunChunks();
    pool->Leave();
  }
  return nullptr;
}

using TorchNumThreads = int (*)();

TorchNumThreads FindTorchNumThreads() {
#if defined(__APPLE__)
  void* library = dlopen("libtorch_cpu.dylib", RTLD_NOLOAD | RTLD_LAZY);
#else
  void* library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
#endif
  void* symbol = dlsym(library != nullptr ? library : RTLD_DEFAULT, "_ZN2at15get_num_threadsEv");
  return reinterpret_cast<TorchNumThreads>(symbol);
}

std::atomic<int> chosen_threads{0};

}  // namespace

void SetNumThreads(int n) { chosen_threads.store(std::max(0, n), std::memory_order_relaxed); }

int NumThreads() {
  int chosen = chosen_threads.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  static const TorchNumThreads torch_threads = FindTorchNumThreads();
  if (torch_threads != nullptr) return std::max(1, torch_threads());
  static const int cpus = AvailableCpus();
  return cpus;
}

void ParallelFor(int64_t total, int num_threads, RangeFn fn, void* context) {
  if (total > 1 && num_threads > 1 && !in_parallel) {
    in_parallel = true;
    auto threads = static_cast<int>(std::min<int64_t>(total, num_threads));
    bool done = Pool::Global()->TryRun(total, threads, fn, context);
    in_parallel = false;
    if (done) return;
  }
  fn(context, 0, total);
}

namespace {

/*! \brief Scratch buffers of one thread, one per nesting level, kept for the next call. */
class ScratchStack {
 public:
  ~ScratchStack() {
    for (int i = 0; i < kLevels; ++i) std::free(levels_[i].data);
  }

  void* Enter(size_t bytes) {
    if (depth_ >= kLevels) return nullptr;
    Buffer& buffer = levels_[depth_];
    if (buffer.bytes < bytes) {
      std::free(buffer.data);
      size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      buffer.data = std::aligned_alloc(kAlignment, rounded);
      buffer.bytes = buffer.data != nullptr ? rounded : 0;
    }
    if (buffer.data != nullptr) ++depth_;
    return buffer.data;
  }
  void Leave() { --depth_; }

 private:
  static constexpr int kLevels = 8;
  static constexpr size_t kAlignment = 64;
  struct Buffer {
    void* data = nullptr;
    size_t bytes = 0;
  };
  Buffer levels_[kLevels];
  int depth_ = 0;
};

ScratchStack& ThreadScratch() {
  static thread_local ScratchStack stack;
  return stack;
}

}  // namespace

ScratchScope::ScratchScope(size_t bytes) {
  if (bytes == 0) return;
  data_ = ThreadScratch().Enter(bytes);
  entered_ = data_ != nullptr;
}

ScratchScope::~ScratchScope() {
  if (entered_) ThreadScratch().Leave();
}

}  // namespace cpu
}  // namespace tilelang
