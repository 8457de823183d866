// SPDX-License-Identifier: Apache-2.0
#include "core/json_place.h"

#include <algorithm>
#include <charconv>

namespace stepcast {
namespace {

class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) { skip_space(); }

  std::int64_t line() const {
    const auto* end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
    return 1 + std::count(text_.begin(), end, '\n');
  }

  // Enters the value under `key`, or the `index`-th; false if there is none, and then it stays.
  bool enter(std::string_view key) {
    return find('{', [&] {
      const std::string_view found = take_text();
      skip_space();
      ++at_;  // the colon
      skip_space();
      return found == key;
    });
  }
  bool enter(std::size_t index) {
    std::size_t count = 0;
    return find('[', [&] { return count++ == index; });
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  // Steps over the members of what begins with `open` until `is_it` says that one begins here.
  template <class IsIt>
  bool find(char open, const IsIt& is_it) {
    const std::size_t begin = at_;
    if (here() == open) {
      ++at_;
      skip_space();
      while (here() != '\0' && here() != ']' && here() != '}') {
        if (is_it()) return true;
        skip_value();
        skip_space();
        if (here() == ',') ++at_;
        skip_space();
      }
    }
    at_ = begin;
    return false;
  }

  // The text that begins here, without its quotes.
  std::string_view take_text() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    const std::string_view out = text_.substr(begin, at_ - begin);
    ++at_;
    return out;
  }

  void skip_value() {
    std::size_t depth = 0;
    do {
      const char c = here();
      if (c == '"') {
        take_text();
      } else if (c == '[' || c == '{') {
        ++depth;
        ++at_;
      } else if (c == ']' || c == '}') {
        --depth;
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of("\"[]{},", at_), text_.size());
        if (depth > 0 && here() == ',') ++at_;
      }
    } while (depth > 0 && at_ < text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t line_of(std::string_view text, std::string_view path) {
  Walk walk(text);
  while (!path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    const bool is_index = path.starts_with('[');
    const std::size_t end = is_index ? path.find(']') + 1 : path.find_first_of(".[");
    if (end == 0) break;
    const std::string_view step = path.substr(0, end);
    bool found = false;
    if (is_index) {
      std::size_t index = 0;
      std::from_chars(step.data() + 1, step.data() + step.size(), index);
      found = walk.enter(index);
    } else {
      found = walk.enter(step);
    }
    if (!found) break;
    path.remove_prefix(step.size());
  }
  return walk.line();
}

}  // namespace stepcast
