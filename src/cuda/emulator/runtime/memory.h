/*!
 * \file memory.h
 * \brief What the checks are told about memory.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "block.h"
#include "warp.h"

namespace tl_emu {

/*! \brief Memory of one launch: known tensors, shared memory, stacks. */
class MemoryScope {
 public:
  MemoryScope(const Launch& launch, const char* stacks, size_t stack_bytes);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /*! \brief The argument words that kernels get. */
  const uint64_t* slots() const { return slots_; }

 private:
  const uint64_t* slots_;
};

void BeginBlock();
void EndBlock();

/*! \brief Whether the address lies in dynamic or static shared memory. */
bool IsShared(const void* address);

/*! \brief Whatever `arrivals` did is visible to `waiting` from now on. */
void OnBarrier(const std::vector<Thread*>& arrivals, const std::vector<Thread*>& waiting);
void OnWarpSync(const Group& group);

/*! \brief False if the copy must not be made. */
bool OnAsyncStart(const AsyncCopy& copy);
void OnAsyncDone(const AsyncCopy& copy, const void* pc);

/*! \brief The first `8 * count` lanes access 16 bytes each. */
void OnMatrixAccess(const Group& group, unsigned count, bool writes);

}  // namespace tl_emu
