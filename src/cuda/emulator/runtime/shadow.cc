/*!
 * \file shadow.cc
 */
#include "shadow.h"

#include <algorithm>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl_emu {
namespace {

const char* Verb(Access access) {
  switch (access) {
    case Access::kRead:
      return "reads";
    case Access::kAtomic:
      return "updates atomically";
    case Access::kAsync:
      return "copies to (cp.async)";
    default:
      return "writes";
  }
}

bool IsWrite(Access access) { return access == Access::kWrite || access == Access::kAsync; }

/*! \brief Whether two unordered accesses are a race. */
bool Collide(Access a, Access b) {
  if (a == Access::kAtomic && b == Access::kAtomic) return false;
  return !(a == Access::kRead && b == Access::kRead);
}

}  // namespace

void Shadow::BeginLaunch() {
  pages_.clear();
  last_page_ = nullptr;
  last_number_ = 0;
  block_ = blocks_ = 0;
  interleaved_ = false;
}

Cell* Shadow::CellOf(uintptr_t address) {
  uintptr_t number = address / kPage;
  if (last_page_ == nullptr || number != last_number_) {
    Page& page = pages_[number];
    if (!page) page.reset(new Cell[kPage]);
    last_number_ = number;
    last_page_ = page.get();
  }
  return &last_page_[address % kPage];
}

/*! \brief Forget what a barrier of the block or the end of a block has ordered. */
void Shadow::Refresh(Cell* cell) const {
  if (cell->interval == order_->interval()) return;
  cell->interval = order_->interval();
  cell->first = Event();
  cell->more.reset();
  if (cell->block == block_) return;
  cell->block = block_;
  if (cell->read.access != Access::kNone) cell->other_read = cell->read;
  if (cell->atomic.access != Access::kNone) cell->other_atomic = cell->atomic;
  cell->read = cell->atomic = Event();
}

bool Shadow::Unordered(const Event& event, unsigned thread) const {
  return event.access != Access::kNone && !order_->IsBefore(event.thread, event.clock, thread);
}

const Event* Shadow::Conflict(const Cell& cell, const Touch& touch) const {
  auto races = [&](const Event& event) {
    return Collide(event.access, touch.access) && Unordered(event, touch.thread);
  };
  if (cell.write_block == block_) {
    // Until a copy has been waited for, not even its own thread may touch its target.
    if (cell.write.access == Access::kAsync || races(cell.write)) return &cell.write;
  }
  if (races(cell.first)) return &cell.first;
  if (cell.more) {
    for (const Event& event : *cell.more) {
      if (races(event)) return &event;
    }
  }
  return nullptr;
}

const Event* Shadow::ConflictWithOtherBlock(const Cell& cell, const Touch& touch) const {
  // Blocks order their accesses by fences and atomics, which are not followed across blocks.
  if (interleaved_ || order_->has_fences()) return nullptr;
  if (cell.write_block != 0 && cell.write_block != block_) return &cell.write;
  if (cell.other_read.access != Access::kNone && touch.access != Access::kRead) {
    return &cell.other_read;
  }
  if (cell.other_atomic.access != Access::kNone && touch.access != Access::kAtomic) {
    return &cell.other_atomic;
  }
  return nullptr;
}

void Shadow::Remember(Cell* cell, const Event& event) {
  if (IsWrite(event.access)) {
    cell->write = event;
    cell->write_block = block_;
    cell->first = Event();
    cell->more.reset();
    return;
  }
  (event.access == Access::kRead ? cell->read : cell->atomic) = event;
  auto same = [&event](const Event& other) {
    return other.thread == event.thread && other.access == event.access;
  };
  if (cell->first.access == Access::kNone || same(cell->first)) {
    cell->first = event;
    return;
  }
  if (!cell->more) cell->more.reset(new std::vector<Event>());
  // Threads run in turn, so the same one is most likely the last.
  for (size_t i = cell->more->size(); i-- > 0;) {
    if (same((*cell->more)[i])) {
      (*cell->more)[i] = event;
      return;
    }
  }
  cell->more->push_back(event);
}

void Shadow::Record(const Touch& touch) {
  Event event{order_->clock(touch.thread), CodeOffset(touch.pc),
              static_cast<uint16_t>(touch.thread), touch.access};
  auto begin = reinterpret_cast<uintptr_t>(touch.address);
  bool reported = false;
  for (size_t i = 0; i < touch.bytes; ++i) {
    Cell* cell = CellOf(begin + i);
    Refresh(cell);
    if (!reported && Checks(kCheckRace)) {
      const Event* other = Conflict(*cell, touch);
      bool other_block = false;
      if (other == nullptr && !touch.shared) {
        other = ConflictWithOtherBlock(*cell, touch);
        other_block = other != nullptr;
      }
      if (other != nullptr) {
        ReportRace(touch, i, *other, other_block);
        reported = true;
      }
    }
    // Blocks in turn use the same shared memory: who wrote a byte first is not known then.
    bool checked = Checks(kCheckUninit) && touch.shared && touch.access == Access::kRead;
    if (checked && !reported && !interleaved_ && cell->write_block != block_ &&
        cell->atomic.access == Access::kNone) {
      ReportUninitialised(touch, i);
      reported = true;
    }
    // The target of a running copy stays marked until the copy is done.
    if (cell->write.access != Access::kAsync || cell->write_block != block_) {
      Remember(cell, event);
    }
  }
}

void Shadow::FinishAsync(const Touch& touch) {
  Event event{order_->clock(touch.thread), CodeOffset(touch.pc),
              static_cast<uint16_t>(touch.thread), Access::kWrite};
  auto begin = reinterpret_cast<uintptr_t>(touch.address);
  for (size_t i = 0; i < touch.bytes; ++i) {
    Cell* cell = CellOf(begin + i);
    Refresh(cell);
    Remember(cell, event);
  }
}

void Shadow::ReportRace(const Touch& touch, size_t offset, const Event& other, bool other_block) {
  const void* pc = CodeAddress(other.code);
  std::string text = BlockText() + ", " + PlaceText(touch.address, offset) + ": thread " +
                     std::to_string(touch.thread) + " " + Verb(touch.access) + " it at " +
                     At(touch.pc) + ", and thread " + std::to_string(other.thread);
  if (other_block) {
    text += " of another block " + std::string(Verb(other.access)) + " it at " + At(pc) +
            "; blocks are not ordered";
  } else if (other.access == Access::kAsync) {
    text += " has a cp.async to it under way, started at " + At(pc) +
            "; nothing has waited for it";
  } else {
    text += " " + std::string(Verb(other.access)) + " it at " + At(pc) +
            " with no barrier between them";
  }
  // The same two lines race in either order.
  std::string here = At(touch.pc), there = At(pc);
  Report("race", std::min(here, there) + std::max(here, there), text);
}

void Shadow::ReportUninitialised(const Touch& touch, size_t offset) {
  Report("uninitialised", At(touch.pc),
         BlockText() + ", " + PlaceText(touch.address, offset) + ": thread " +
             std::to_string(touch.thread) + " reads it at " + At(touch.pc) +
             ", and nothing has been written there");
}

}  // namespace tl_emu
