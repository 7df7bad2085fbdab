/*!
 * \file report.cc
 */
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "block.h"

extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));

namespace tl_emu {
namespace {

constexpr size_t kMaxReports = 32;

std::vector<std::string> reports;
std::set<std::string> seen;

void Store(const char* kind, const std::string& message) {
  reports.push_back(std::string(kind) + "\t" + message);
}

}  // namespace

std::string At(const void* pc) {
  char text[32];
  // The address a call returns to belongs to the next line; one byte before it, to the call.
  std::snprintf(text, sizeof(text), "@{%zx}",
                static_cast<size_t>(static_cast<const char*>(pc) - __ehdr_start) - 1);
  return text;
}

void NumberList::Flush(std::string* text) const {
  if (!text->empty()) *text += ", ";
  *text += std::to_string(first_);
  if (last_ > first_) *text += "-" + std::to_string(last_);
}

void NumberList::Add(unsigned number) {
  if (size_ > 0 && number == last_ + 1) {
    last_ = number;
  } else {
    if (size_ > 0) Flush(&text_);
    first_ = last_ = number;
  }
  ++size_;
}

std::string NumberList::Text() const {
  std::string text = text_;
  if (size_ > 0) Flush(&text);
  return text;
}

void Report(const char* kind, const std::string& key, const std::string& message) {
  if (reports.size() >= kMaxReports || !seen.insert(std::string(kind) + key).second) return;
  Store(kind, message);
}

void Fail(const char* kind, const std::string& message) {
  Store(kind, message);
  AbandonLaunch();
}

bool HasReports() { return !reports.empty(); }

void ClearReports() {
  reports.clear();
  seen.clear();
}

}  // namespace tl_emu

/*! \brief Copy the findings of the last launch, one a line, and return their size in bytes. */
extern "C" __attribute__((visibility("default"))) size_t tl_emulator_reports(char* buffer,
                                                                            size_t capacity) {
  std::string text;
  for (const std::string& report : tl_emu::reports) text += report + "\n";
  if (buffer != nullptr) std::memcpy(buffer, text.data(), std::min(text.size(), capacity));
  return text.size();
}
