/*!
 * \file traffic.h
 * \brief Counts passes over the banks of shared memory and sectors of global memory.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "block.h"

namespace tl_emu {

/*! \brief Accesses that the lanes of a warp make with one instruction. */
struct Request {
  uintptr_t address[kWarpSize];
  uint32_t lanes = 0;
};

/*! \brief Sums of one instruction. */
struct Tally {
  uint64_t requests = 0, actual = 0, ideal = 0;
};

class Traffic {
 public:
  void BeginLaunch() { tallies_.clear(); }
  void BeginBlock(size_t threads);
  /*! \brief Count what is not complete: lanes that were absent will not come any more. */
  void EndBlock();

  /*! \brief The thread's next access by the instruction at `code`. */
  void Record(const Thread& thread, uint32_t code, const void* address, size_t bytes, bool shared);
  /*! \brief One pass of a matrix load: eight rows of 16 bytes. */
  void RecordRows(uint32_t code, const char* const (&rows)[8]);

  /*! \brief `shared<tab>offset<tab>requests<tab>actual<tab>ideal` lines. */
  std::string Text() const;

 private:
  /*! \brief An instruction as one warp meets it, with the requests under way. */
  struct Stream {
    size_t bytes = 0;
    uint64_t done = 0;  // requests that have been counted
    std::vector<Request> open;
    uint64_t next[kWarpSize] = {};  // number of the next request of each lane
  };
  struct Key {
    uint32_t code, warp;
    bool shared;
    bool operator<(const Key& other) const {
      if (code != other.code) return code < other.code;
      if (warp != other.warp) return warp < other.warp;
      return shared < other.shared;
    }
  };

  void Count(uint32_t code, bool shared, size_t bytes, const Request& request);

  std::map<Key, Stream> streams_;
  std::map<std::pair<uint32_t, bool>, Tally> tallies_;
  std::vector<uint32_t> full_;  // lanes that each warp has
};

}  // namespace tl_emu
