/*!
 * \file cp_async.h
 * \brief Asynchronous copies, emulated; the twin of templates/tl/cp_async.h.
 */
#pragma once

#include "emulator/runtime.h"

namespace tl {

template <int bytes>
inline void cp_async(void* target, const void* source, bool valid = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  tl_emu::tl_emu_copy_async(target, source, bytes, valid ? bytes : 0);
}

inline void cp_async_commit() { tl_emu::tl_emu_copy_commit(); }

template <int pending>
inline void cp_async_wait() {
  tl_emu::tl_emu_copy_wait(pending);
}

}  // namespace tl
