/*!
 * \file traffic.cc
 */
#include "traffic.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace tl_emu {
namespace {

constexpr size_t kBanks = 32, kWord = 4, kSector = 32;

/*! \brief Passes over the banks for words touched at the same time. */
uint64_t Passes(const std::set<uintptr_t>& words) {
  uint64_t load[kBanks] = {};
  for (uintptr_t word : words) ++load[word % kBanks];
  return *std::max_element(load, load + kBanks);
}

void AddPass(const std::set<uintptr_t>& words, Tally* tally) {
  if (words.empty()) return;
  tally->actual += Passes(words);
  tally->ideal += (words.size() + kBanks - 1) / kBanks;
}

/*! \brief Lanes whose accesses of that width are served together. */
unsigned LanesAtOnce(size_t bytes) {
  if (bytes <= 4) return kWarpSize;
  return bytes == 8 ? kWarpSize / 2 : kWarpSize / 4;
}

void CountBanks(const Request& request, size_t bytes, Tally* tally) {
  unsigned step = LanesAtOnce(bytes);
  for (unsigned begin = 0; begin < kWarpSize; begin += step) {
    std::set<uintptr_t> words;
    for (unsigned lane = begin; lane < begin + step; ++lane) {
      if ((request.lanes >> lane & 1u) == 0) continue;
      for (size_t i = 0; i < bytes; i += kWord) words.insert((request.address[lane] + i) / kWord);
    }
    AddPass(words, tally);
  }
}

void CountSectors(const Request& request, size_t bytes, Tally* tally) {
  std::set<uintptr_t> sectors, touched;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((request.lanes >> lane & 1u) == 0) continue;
    for (size_t i = 0; i < bytes; ++i) {
      touched.insert(request.address[lane] + i);
      sectors.insert((request.address[lane] + i) / kSector);
    }
  }
  tally->actual += sectors.size();
  tally->ideal += (touched.size() + kSector - 1) / kSector;
}

}  // namespace

void Traffic::BeginBlock(size_t threads) {
  full_.clear();
  for (size_t begin = 0; begin < threads; begin += kWarpSize) {
    size_t lanes = std::min<size_t>(kWarpSize, threads - begin);
    full_.push_back(lanes == kWarpSize ? ~0u : (1u << lanes) - 1);
  }
}

void Traffic::EndBlock() {
  for (auto& [key, stream] : streams_) {
    for (const Request& request : stream.open) Count(key.code, key.shared, stream.bytes, request);
  }
  streams_.clear();
}

void Traffic::Count(uint32_t code, bool shared, size_t bytes, const Request& request) {
  Tally& tally = tallies_[{code, shared}];
  ++tally.requests;
  if (shared) {
    CountBanks(request, bytes, &tally);
  } else {
    CountSectors(request, bytes, &tally);
  }
}

void Traffic::Record(const Thread& thread, uint32_t code, const void* address, size_t bytes,
                     bool shared) {
  Stream& stream = streams_[{code, thread.warp(), shared}];
  stream.bytes = bytes;
  // The n-th time a lane is here it executes the same instruction as the others their n-th time.
  uint64_t place = stream.next[thread.lane()]++ - stream.done;
  if (place >= stream.open.size()) stream.open.resize(place + 1);
  stream.open[place].address[thread.lane()] = reinterpret_cast<uintptr_t>(address);
  stream.open[place].lanes |= 1u << thread.lane();
  size_t complete = 0;
  while (complete < stream.open.size() && stream.open[complete].lanes == full_[thread.warp()]) {
    Count(code, shared, bytes, stream.open[complete++]);
  }
  stream.open.erase(stream.open.begin(),
                    stream.open.begin() + static_cast<std::ptrdiff_t>(complete));
  stream.done += complete;
}

void Traffic::RecordRows(uint32_t code, const char* const (&rows)[8]) {
  std::set<uintptr_t> words;
  for (const char* row : rows) {
    for (size_t i = 0; i < kMatrixRowBytes; i += kWord) {
      words.insert((reinterpret_cast<uintptr_t>(row) + i) / kWord);
    }
  }
  Tally& tally = tallies_[{code, true}];
  ++tally.requests;
  AddPass(words, &tally);
}

std::string Traffic::Text() const {
  std::string text;
  for (const auto& [key, tally] : tallies_) {
    char line[128];
    std::snprintf(line, sizeof(line), "%s\t%x\t%llu\t%llu\t%llu\n",
                  key.second ? "shared" : "global", key.first,
                  static_cast<unsigned long long>(tally.requests),
                  static_cast<unsigned long long>(tally.actual),
                  static_cast<unsigned long long>(tally.ideal));
    text += line;
  }
  return text;
}

}  // namespace tl_emu
