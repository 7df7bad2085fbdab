/*!
 * \file async_copy.cc
 * \brief cp.async with the least that the hardware promises.
 *
 * From the start of a copy to the wait its target may hold the old bytes, the new ones or a mix.
 * Here it holds bytes that are neither (NaN in every format), so that whoever reads too early, or
 * overwrites what others still read, gets a wrong result in every run.
 */
#include <cstring>
#include <string>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl_emu {
namespace {

void Require(bool condition, const char* message, const void* pc) {
  if (!condition) Fail("cp.async", ThreadText(*block.current) + ": " + message + ", at " + At(pc));
}

void Finish(const AsyncCopy& copy) {
  if (copy.read_bytes > 0 && std::memcmp(copy.data, copy.source, copy.read_bytes) != 0) {
    Report("race", "cp.async" + At(copy.pc),
           ThreadText(*block.current) + ": the source of a cp.async changed while the copy was " +
               "under way, at " +
               At(copy.pc));
  }
  std::memcpy(copy.target, copy.data, copy.bytes);
  OnAsyncDone(copy);
}

}  // namespace

extern "C" {

void tl_emu_copy_async(void* target, const void* source, size_t bytes, size_t read_bytes) {
  Thread* thread = block.current;
  const void* pc = __builtin_return_address(0);
  Require(reinterpret_cast<uintptr_t>(target) % bytes == 0, "the target is not aligned", pc);
  Require(read_bytes == 0 || reinterpret_cast<uintptr_t>(source) % bytes == 0,
          "the source is not aligned", pc);
  Require(IsShared(target), "the target is not in shared memory", pc);
  AsyncCopy copy{static_cast<char*>(target),
                 static_cast<const char*>(source),
                 static_cast<uint32_t>(bytes),
                 static_cast<uint32_t>(read_bytes),
                 thread->open_group,
                 {},
                 pc};
  OnAsyncStart(copy);
  std::memcpy(copy.data, source, read_bytes);
  std::memset(target, kUndefinedByte, bytes);
  thread->copies.push_back(copy);
}

void tl_emu_copy_commit() { ++block.current->open_group; }

void tl_emu_copy_wait(int pending) {
  Thread* thread = block.current;
  while (!thread->copies.empty() && thread->copies.front().group < thread->open_group - pending) {
    Finish(thread->copies.front());
    thread->copies.pop_front();
  }
}

}  // extern "C"

}  // namespace tl_emu
