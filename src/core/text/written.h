// SPDX-License-Identifier: Apache-2.0
// Text that is ready for a reader of its format. Whatever a command prints or writes is of this
// type, so that a name from a file cannot get there without an escaper: only the program's own
// words, as literals, become Written by themselves.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace stepcast {

class Written {
 public:
  Written() = default;
  template <std::size_t N>
  Written(const char (&own_words)[N]) : text_(own_words, N - 1) {}  // NOLINT: literals alone
  template <std::size_t N>
  Written(char (&)[N]) = delete;  // a buffer may hold anything

  // For the escapers of this folder, and for writers that call them on each foreign string. The
  // test `tidy.escapes` knows these files.
  static Written escaped(std::string text) {
    Written out;
    out.text_ = std::move(text);
    return out;
  }

  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }
  operator const std::string&() const& { return text_; }  // NOLINT: reading it is safe
  operator std::string() && { return std::move(text_); }  // NOLINT
  bool empty() const { return text_.empty(); }

  Written& operator+=(const Written& more) {
    text_ += more.text_;
    return *this;
  }
  friend Written operator+(Written left, const Written& right) { return std::move(left += right); }
  friend bool operator==(const Written& a, const Written& b) { return a.text_ == b.text_; }
  template <std::same_as<std::string> Text>
  friend bool operator==(const Written& a, const Text& b) {
    return a.text_ == b;
  }

 private:
  std::string text_;
};

}  // namespace stepcast
