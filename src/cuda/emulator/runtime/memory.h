/*!
 * \file memory.h
 * \brief Where memory accesses go, and what the checks are told about them.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "block.h"
#include "shadow.h"
#include "warp.h"

namespace tl_emu {

/*! \brief Memory of one launch: tensors, shared memory, stacks. */
class MemoryScope {
 public:
  explicit MemoryScope(const Launch& launch);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /*! \brief The argument words that kernels get. */
  const uint64_t* slots() const { return slots_.data(); }

 private:
  /*! \brief Tensors that share memory, copied between two zones that nobody may touch. */
  struct Guarded {
    char* original;
    size_t bytes;
    std::unique_ptr<char[]> storage;
    char* copy;
  };
  void GuardTensors(const Launch& launch);

  std::vector<uint64_t> slots_;
  std::vector<Guarded> guarded_;
};

void BeginBlock();
void EndBlock();

/*! \brief Where the stacks of the block are. */
void SetStacks(const char* begin, size_t bytes);

/*! \brief Shared memory of a block while others run, and what is known of its accesses. */
struct BlockMemory {
  std::vector<char> dynamic_shared, static_shared;
  HappensBefore order;
  uint32_t number;
};
BlockMemory SaveMemory();
void RestoreMemory(BlockMemory memory);
void OnGridBarrier();

/*! \brief Whether the address lies in dynamic or static shared memory. */
bool IsShared(const void* address);

/*! \brief `shared memory, byte 128` or `tensor A, byte 4` for `offset` bytes behind an address. */
std::string PlaceText(const void* address, size_t offset);

/*! \brief Whether the address lies in the unmapped page below the stack of a thread. */
bool IsStackGuard(const void* address);

/*! \brief Whether the address lies in this shared object. */
bool IsKernelCode(const void* address);

/*! \brief The offset of a code address in the shared object, and back. */
uint32_t CodeOffset(const void* pc);
const void* CodeAddress(uint32_t offset);

/*! \brief The current thread accesses memory. */
void OnAccess(const void* address, size_t bytes, Access access, const void* pc);

void OnAtomic(const void* address, size_t bytes, bool writes, Order order, const void* pc);

/*! \brief What arriving threads did is visible to those that waited, once all are there. */
void OnArrival(Thread* thread, Barrier* barrier);
void OnBarrier(const Barrier& barrier);
void OnWarpSync(const Group& group);

void OnAsyncStart(const AsyncCopy& copy);
void OnAsyncDone(const AsyncCopy& copy);

/*! \brief The first `8 * count` lanes access 16 bytes each. */
void OnMatrixAccess(const Group& group, unsigned count, bool writes);

}  // namespace tl_emu
