// SPDX-License-Identifier: Apache-2.0
// The text of a Chrome trace, which is written event by event.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

namespace stepcast {

class TraceText {
 public:
  template <class... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  // Parts the next event from the one before it.
  void next() {
    append("{}", first_ ? "\n" : ",\n");
    first_ = false;
  }
  std::string text() const { return fmt::to_string(out_); }

 private:
  fmt::memory_buffer out_;
  bool first_ = true;
};

// Microseconds with all twelve decimals of a second. A step's mark may begin before time zero.
inline std::string trace_time(std::int64_t ps) {
  const char* sign = ps < 0 ? "-" : "";
  const std::int64_t size = ps < 0 ? -ps : ps;
  return fmt::format("{}{}.{:06}", sign, size / 1000000, size % 1000000);
}

}  // namespace stepcast
