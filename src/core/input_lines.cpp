// SPDX-License-Identifier: Apache-2.0
#include "core/input_lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace stepcast {

bool InputLines::wait() {
  const int most_ms = silence_s_ > 0 ? static_cast<int>(silence_s_ * 1000) : -1;
  pollfd waited{file_, POLLIN, 0};
  int found = 0;
  do {
    found = ::poll(&waited, 1, most_ms);
  } while (found < 0 && errno == EINTR);
  is_silent_ = found <= 0;
  return !is_silent_;
}

bool InputLines::fill() {
  if (failed_ != 0) return false;  // a second try might succeed behind what is lost
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  block_.resize(kBlock);
  ssize_t got = 0;
  do {
    got = ::read(file_, block_.data(), kBlock);
  } while (got < 0 && (errno == EINTR || (errno == EAGAIN && wait())));
  failed_ = got < 0 && !is_silent_ ? errno : 0;
  block_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  begin_ = 0;
  return got > 0;
}

InputLines::Kind InputLines::next(std::string& line) {
  line.clear();
  const char* const ends = ends_ == Ends::kLineFeeds ? "\n" : "\n\r";
  bool begun = false, too_long = false;
  while (begin_ < block_.size() || fill()) {
    begun = true;
    const std::size_t end = std::min(block_.find_first_of(ends, begin_), block_.size());
    too_long = too_long || line.size() + (end - begin_) > longest_;
    if (!too_long) line.append(block_, begin_, end - begin_);
    const bool is_whole = end < block_.size();
    begin_ = is_whole ? end + 1 : end;
    was_ended_ = is_whole;
    if (is_whole) return too_long ? Kind::kTooLong : Kind::kWhole;
  }
  if (!begun || failed_ != 0) return Kind::kEnd;
  return too_long ? Kind::kTooLong : Kind::kWhole;
}

}  // namespace stepcast
