// SPDX-License-Identifier: Apache-2.0
// Reads words of a shell script and expands what is in them.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/shell_state.h"

namespace stepcast {

inline bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
inline bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The words that a part of a script expands to. A field is begun by any character or quote.
class Fields {
 public:
  void add(char c) { add(std::string_view(&c, 1)); }
  void add(std::string_view text) {
    open_ = true;
    current_ += text;
  }
  void close() {
    if (open_) done_.push_back(std::move(current_));
    current_.clear();
    open_ = false;
  }
  // Adds an unquoted value, whose blanks separate words.
  void add_split(std::string_view text) {
    for (const char c : text) {
      if (std::isspace(static_cast<unsigned char>(c))) {
        close();
      } else {
        add(c);
      }
    }
  }
  std::vector<std::string> take() {
    close();
    return std::move(done_);
  }

 private:
  std::vector<std::string> done_;
  std::string current_;
  bool open_ = false;
};

class ShellWords {
 public:
  ShellWords(std::string_view text, ShellState& state, int depth)
      : text_(text), state_(state), depth_(depth) {}

  // The whole text as one quoted value.
  std::string value();

 protected:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // The text that is left; behind a quote that nobody closes there is none.
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  bool stands(std::string_view here) const { return rest().starts_with(here); }
  // The text from `begin` to here, without its last `less` letters.
  std::string_view since(std::size_t begin, std::size_t less = 0) const {
    const std::size_t end = std::min(at_, text_.size());
    return end < begin + less ? std::string_view() : text_.substr(begin, end - begin - less);
  }
  bool skip_continuation();
  void skip_blanks();
  void skip_comment();
  void skip_here_documents();
  void read_redirection();
  // A word may be an assignment, which is then made.
  std::vector<std::string> read_word(bool assignable, bool& assigned);
  // One word, whatever its variables hold: blanks in these separate nothing.
  std::string read_whole_word();
  // Reads up to `close`; pairs of open and close inside belong to it.
  std::string read_until(std::string_view open, std::string_view close);
  std::string read_arithmetic();  // behind "((", to behind "))"
  // Counts what an expansion, a loop or a function adds. False, and at the end, beyond the limit.
  bool afford(std::size_t characters);

  std::string_view text_;
  ShellState& state_;
  int depth_;
  std::size_t at_ = 0;

 private:
  void read_assignment(const std::string& name, bool append);
  std::vector<std::string> read_array();
  void read_single_quoted(Fields& fields);
  void read_ansi_quoted(Fields& fields);
  void read_double_quoted(Fields& fields);
  void read_quoted_character(Fields& fields);
  void read_expansion(Fields& fields, bool quoted);
  void read_variable(const std::string& name, Fields& fields, bool quoted);
  void read_braces(Fields& fields, bool quoted);
  bool put_default(std::string_view rest, const std::vector<std::string>* values, bool apart,
                   Fields& fields, bool quoted);
  std::string expanded(std::string_view text);
  void put(Fields& fields, const std::vector<std::string>& values, bool quoted, bool apart);

  std::vector<std::string> here_documents_;
};

}  // namespace stepcast
