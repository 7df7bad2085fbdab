/*!
 * \file barrier.cc
 * \brief Barriers of a block, and the report of who waits where.
 */
#include <map>
#include <string>
#include <tuple>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl_emu {
namespace {

/*! \brief All lanes of a warp must have come to the same barrier of the program. */
void CheckConverged(const Barrier& barrier) {
  const Thread* previous = nullptr;
  for (const Thread* thread : barrier.waiting) {
    if (previous != nullptr && previous->warp() == thread->warp() &&
        previous->site != thread->site) {
      Report("divergent barrier", At(previous->pc) + At(thread->pc),
             BlockText() + ": threads of one warp meet at different barriers, thread " +
                 std::to_string(previous->linear) + " at " + At(previous->pc) + " and thread " +
                 std::to_string(thread->linear) + " at " + At(thread->pc));
      return;
    }
    previous = thread;
  }
}

bool IsComplete(const Barrier& barrier) {
  int expected = barrier.expected > 0 ? barrier.expected : static_cast<int>(block.live);
  return barrier.arrived > 0 && barrier.arrived >= expected;
}

void Release(Barrier* barrier) {
  block.idle_atomics = 0;
  CheckConverged(*barrier);
  OnBarrier(*barrier);
  Barrier done;
  std::swap(done, *barrier);
  for (Thread* thread : done.waiting) {
    // The vote of this thread is known only now; what it asked for is in vote_result.
    switch (static_cast<Vote>(thread->vote_result)) {
      case Vote::kNone:
        break;
      case Vote::kCount:
        thread->vote_result = done.held;
        break;
      case Vote::kAnd:
        thread->vote_result = done.held == done.arrived;
        break;
      case Vote::kOr:
        thread->vote_result = done.held > 0;
        break;
    }
    thread->state = State::kReady;
  }
}

void CheckArguments(const Thread& thread, const Barrier& barrier, int id, int count) {
  if (id < 0 || id >= kBarriers) {
    Fail("barrier", ThreadText(thread) + ": barrier " + std::to_string(id) +
                        " does not exist, there are 0 to 15, at " + At(thread.pc));
  }
  if (count % static_cast<int>(kWarpSize) != 0 || count < 0) {
    Fail("barrier", ThreadText(thread) + ": barrier " + std::to_string(id) + " for " +
                        std::to_string(count) + " threads is not for whole warps, at " +
                        At(thread.pc));
  }
  if (barrier.arrived > 0 && barrier.expected != count) {
    Fail("barrier", ThreadText(thread) + ": barrier " + std::to_string(id) + " for " +
                        std::to_string(count) + " threads, but others wait at it for " +
                        std::to_string(barrier.expected) + ", at " + At(thread.pc));
  }
}

std::string Lanes(uint32_t mask) {
  NumberList lanes;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (mask >> lane & 1u) lanes.Add(lane);
  }
  return lanes.Text();
}

std::string WaitText(const Thread& thread) {
  switch (thread.state) {
    case State::kExited:
      return "have exited";
    case State::kBarrier: {
      const Barrier& barrier = block.barriers[thread.barrier];
      std::string count = barrier.expected > 0 ? " for " + std::to_string(barrier.expected) +
                                                     " threads"
                                               : "";
      return "wait at barrier " + std::to_string(thread.barrier) + count + " at " + At(thread.pc);
    }
    case State::kReady:
      return "run";
    case State::kGrid:
      return "wait at a barrier of the grid at " + At(thread.pc);
    default:
      return std::string("wait in ") + NameOf(thread.request.op) + " for lanes " +
             Lanes(thread.request.mask) + " at " + At(thread.pc);
  }
}

}  // namespace

std::string DescribeWaiting() {
  std::map<std::string, NumberList> groups;
  for (const Thread& thread : block.threads) groups[WaitText(thread)].Add(thread.linear);
  std::string text;
  for (const auto& [what, threads] : groups) {
    if (!text.empty()) text += "; ";
    text += "threads " + threads.Text() + " " + what;
  }
  return text;
}

/*! \brief Barriers without a count need one thread less now. */
void ReleaseBarriersAfterExit() {
  for (Barrier& barrier : block.barriers) {
    if (barrier.expected == 0 && IsComplete(barrier)) Release(&barrier);
  }
}

extern "C" int tl_emu_barrier(int id, int count, bool wait, Vote vote, bool predicate, int site) {
  Thread* thread = block.current;
  thread->pc = __builtin_return_address(0);
  // A bad number is refused before it selects a barrier.
  Barrier* barrier = &block.barriers[id >= 0 && id < kBarriers ? id : 0];
  CheckArguments(*thread, *barrier, id, count);
  barrier->expected = count;
  ++barrier->arrived;
  barrier->held += predicate;
  OnArrival(thread, barrier);
  if (wait) {
    barrier->waiting.push_back(thread);
    thread->state = State::kBarrier;
    thread->barrier = id;
    thread->site = site;
    thread->vote_result = static_cast<int>(vote);
  }
  if (IsComplete(*barrier)) Release(barrier);
  if (thread->state != State::kReady) Suspend();
  return thread->vote_result;
}

}  // namespace tl_emu
