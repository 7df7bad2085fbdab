/*!
 * \file launch.h
 * \brief From argument words to a typed kernel call.
 */
#pragma once

#include <cstring>
#include <utility>

#include "runtime.h"

namespace tl_emu {

template <class T>
__attribute__((no_sanitize("thread"))) inline T Argument(uint64_t slot) {
  static_assert(sizeof(T) <= sizeof(slot), "kernel arguments are at most 64 bits wide");
  T value;
  std::memcpy(&value, &slot, sizeof(T));
  return value;
}

template <class... P>
struct Kernel {
  // The argument words are not memory of the kernel.
  template <void (*kFunction)(P...), size_t... I>
  __attribute__((no_sanitize("thread"))) static void Unpack(const uint64_t* slots,
                                                            std::index_sequence<I...>) {
    (void)slots;
    kFunction(Argument<P>(slots[I])...);
  }
  template <void (*kFunction)(P...)>
  static void Call(const uint64_t* slots) {
    Unpack<kFunction>(slots, std::index_sequence_for<P...>{});
  }
};

template <class... P>
Kernel<P...> SignatureOf(void (*)(P...));

}  // namespace tl_emu

/*! \brief Define the entry point `tl_emulate_<name>` of a kernel. */
#define TL_EMULATED_KERNEL(name)                                                     \
  extern "C" __attribute__((visibility("default"))) int tl_emulate_##name(           \
      const tl_emu::Launch* launch) {                                                \
    using Signature = decltype(tl_emu::SignatureOf(name));                           \
    return tl_emu::tl_emu_launch(launch, &Signature::template Call<name>);           \
  }
