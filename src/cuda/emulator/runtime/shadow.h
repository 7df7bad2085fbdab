/*!
 * \file shadow.h
 * \brief What is remembered of every byte: its last write and the accesses since.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "order.h"

namespace tl_emu {

enum class Access : uint8_t { kNone, kRead, kWrite, kAtomic, kAsync };

/*! \brief One access of a thread: when, from which code, how. */
struct Event {
  uint32_t clock = 0;
  uint32_t code = 0;  // offset in the shared object
  uint16_t thread = 0;
  Access access = Access::kNone;
};

/*! \brief History of a byte since its last plain write. */
struct Cell {
  Event write;
  uint32_t write_block = 0;  // number of the block, from 1 on
  uint32_t block = 0;        // that reads and atomics below belong to
  uint32_t interval = 0;
  Event first;  // of the reads and atomics since the latest barrier of the block
  std::unique_ptr<std::vector<Event>> more;
  Event read, atomic;              // the latest of this block
  Event other_read, other_atomic;  // one of an earlier block each
};

/*! \brief A range of memory that a thread accesses, with words for messages. */
struct Touch {
  const void* address;
  size_t bytes;
  unsigned thread;
  Access access;
  const void* pc;
  bool shared;
};

/*! \brief Cells of all memory that has been touched, by page. */
class Shadow {
 public:
  explicit Shadow(HappensBefore* order) : order_(order) {}

  void BeginLaunch();
  void BeginBlock() { block_ = ++blocks_; }
  uint32_t block() const { return block_; }
  /*! \brief Continue a block that has waited at a barrier of the grid. */
  void ResumeBlock(uint32_t number) { block_ = number; }
  /*! \brief From now on blocks take turns, and order what they do. */
  void OnGridBarrier() { interleaved_ = true; }

  /*! \brief Check and remember an access. */
  void Record(const Touch& touch);
  /*! \brief A copy has arrived: its bytes are written by its thread now. */
  void FinishAsync(const Touch& touch);

 private:
  static constexpr size_t kPage = 4096;
  using Page = std::unique_ptr<Cell[]>;

  Cell* CellOf(uintptr_t address);
  void Refresh(Cell* cell) const;
  /*! \brief The remembered event that this access races with. */
  const Event* Conflict(const Cell& cell, const Touch& touch) const;
  const Event* ConflictWithOtherBlock(const Cell& cell, const Touch& touch) const;
  bool Unordered(const Event& event, unsigned thread) const;
  void Remember(Cell* cell, const Event& event);
  void ReportRace(const Touch& touch, size_t offset, const Event& other, bool other_block);
  void ReportUninitialised(const Touch& touch, size_t offset);

  HappensBefore* order_;
  std::unordered_map<uintptr_t, Page> pages_;
  uintptr_t last_number_ = 0;
  Cell* last_page_ = nullptr;
  uint32_t block_ = 0;   // number of the block that runs
  uint32_t blocks_ = 0;  // blocks that have been started
  bool interleaved_ = false;
};

}  // namespace tl_emu
