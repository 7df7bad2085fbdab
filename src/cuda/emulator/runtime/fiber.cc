/*!
 * \file fiber.cc
 * \brief The context switch: callee-saved registers go to the old stack and come from the new one.
 */
#include "fiber.h"

#include <cstring>

#if defined(__x86_64__)

extern "C" void tl_emu_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.hidden tl_emu_switch
.globl tl_emu_switch
.type tl_emu_switch, @function
tl_emu_switch:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tl_emu_switch, .-tl_emu_switch
)");

namespace tl_emu {

void SwitchFiber(Fiber* from, Fiber* to) { tl_emu_switch(&from->stack_pointer, to->stack_pointer); }

void PrepareFiber(Fiber* fiber, void (*entry)(), char* stack, size_t bytes) {
  // After the last pop the stack must look as if `entry` had been called: 8 modulo 16.
  auto top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15};
  auto* words = reinterpret_cast<uintptr_t*>(top) - 8;
  std::memset(words, 0, 8 * sizeof(uintptr_t));
  words[6] = reinterpret_cast<uintptr_t>(entry);
  fiber->stack_pointer = words;
}

}  // namespace tl_emu

#elif defined(__aarch64__)

extern "C" void tl_emu_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.hidden tl_emu_switch
.globl tl_emu_switch
.type tl_emu_switch, %function
tl_emu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tl_emu_switch, .-tl_emu_switch
)");

namespace tl_emu {

void SwitchFiber(Fiber* from, Fiber* to) { tl_emu_switch(&from->stack_pointer, to->stack_pointer); }

void PrepareFiber(Fiber* fiber, void (*entry)(), char* stack, size_t bytes) {
  auto top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15};
  auto* words = reinterpret_cast<uintptr_t*>(top) - 20;
  std::memset(words, 0, 20 * sizeof(uintptr_t));
  words[11] = reinterpret_cast<uintptr_t>(entry);  // the link register
  fiber->stack_pointer = words;
}

}  // namespace tl_emu

#else

namespace tl_emu {

void SwitchFiber(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }

void PrepareFiber(Fiber* fiber, void (*entry)(), char* stack, size_t bytes) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = stack;
  fiber->context.uc_stack.ss_size = bytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, entry, 0);
}

}  // namespace tl_emu

#endif
