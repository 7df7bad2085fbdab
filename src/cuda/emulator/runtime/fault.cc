/*!
 * \file fault.cc
 */
#include "fault.h"

#include <pthread.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl_emu {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
constexpr size_t kHandlerStackBytes = 64 * 1024;

struct sigaction old_actions[sizeof(kSignals) / sizeof(kSignals[0])];
pthread_t launching;
alignas(16) char handler_stack[kHandlerStackBytes];

const void* FaultingCode(const void* context) {
  auto* user = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(user->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(user->uc_mcontext.pc);
#else
  (void)user;
  return nullptr;
#endif
}

std::string What(int signal, const void* address) {
  if (signal == SIGFPE) return "divides an integer by zero";
  if (IsStackGuard(address)) return "needs more than its stack for local arrays";
  char text[64];
  std::snprintf(text, sizeof(text), "accesses address %p, where there is no memory", address);
  return text;
}

void OnFault(int signal, siginfo_t* info, void* context) {
  if (block.current == nullptr || !pthread_equal(launching, pthread_self())) {
    // Not ours: let the instruction fault again under the handler that was there before.
    for (size_t i = 0; i < sizeof(kSignals) / sizeof(kSignals[0]); ++i) {
      if (kSignals[i] == signal) sigaction(signal, &old_actions[i], nullptr);
    }
    return;
  }
  auto* pc = static_cast<const char*>(FaultingCode(context));
  // At() expects the address behind the instruction; a library function was called from the pc
  // that the thread has noted.
  const void* place = IsKernelCode(pc) ? pc + 1 : block.current->pc;
  Fail("fault", ThreadText(*block.current) + " " + What(signal, info->si_addr) +
                    (place != nullptr ? " at " + At(place) : ""));
}

}  // namespace

FaultScope::FaultScope() {
  launching = pthread_self();
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof(handler_stack);
  sigaltstack(&stack, &old_stack_);
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  // The handler never returns from a fault of a fiber, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < sizeof(kSignals) / sizeof(kSignals[0]); ++i) {
    sigaction(kSignals[i], &action, &old_actions[i]);
  }
}

FaultScope::~FaultScope() {
  for (size_t i = 0; i < sizeof(kSignals) / sizeof(kSignals[0]); ++i) {
    sigaction(kSignals[i], &old_actions[i], nullptr);
  }
  sigaltstack(&old_stack_, nullptr);
}

}  // namespace tl_emu
