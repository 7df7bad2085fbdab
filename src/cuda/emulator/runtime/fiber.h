/*!
 * \file fiber.h
 * \brief Switching between stacks within one host thread.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace tl_emu {

/*! \brief A suspended stack: where its registers are saved. */
struct Fiber {
#if defined(__x86_64__) || defined(__aarch64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};

/*! \brief Suspend the running code into `from` and continue `to`. */
void SwitchFiber(Fiber* from, Fiber* to);

/*! \brief Make `fiber` start `entry` on the given stack; `entry` never returns. */
void PrepareFiber(Fiber* fiber, void (*entry)(), char* stack, size_t bytes);

}  // namespace tl_emu
