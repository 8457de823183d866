// SPDX-License-Identifier: Apache-2.0
#include "recipes/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace stepcast {

std::string ShellWords::value() {
  Fields fields;
  while (at_ < text_.size()) read_quoted_character(fields);
  const auto words = fields.take();
  return fmt::format("{}", fmt::join(words, " "));
}

bool ShellWords::skip_continuation() {
  if (peek() != '\\') return false;
  const std::size_t length = peek(1) == '\n' ? 2 : peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
  at_ += length;
  return length > 0;
}

void ShellWords::skip_blanks() {
  while (is_blank(peek()) || skip_continuation()) at_ += is_blank(peek()) ? 1 : 0;
}

void ShellWords::skip_comment() {
  if (peek() != '#') return;
  while (at_ < text_.size() && peek() != '\n') ++at_;
}

bool ShellWords::afford(std::size_t characters) {
  state_.expanded += characters;
  if (state_.expanded <= kMostExpanded) return true;
  state_.script.too_large = true;
  at_ = text_.size();
  return false;
}

std::string ShellWords::read_whole_word() {
  constexpr std::string_view kEnds = " \t\r\n;|&()<>";
  Fields fields;
  fields.add("");
  while (at_ < text_.size() && kEnds.find(peek()) == std::string_view::npos) {
    if (skip_continuation()) continue;
    if (peek() == '\'') {
      read_single_quoted(fields);
    } else if (peek() == '"') {
      read_double_quoted(fields);
    } else if (peek() == '`') {
      ++at_;
      fields.add("`" + read_until("", "`") + "`");
    } else if (peek() == '\\' && at_ + 1 < text_.size()) {
      fields.add(peek(1));
      at_ += 2;
    } else {
      read_quoted_character(fields);
    }
  }
  const auto words = fields.take();
  return fmt::format("{}", fmt::join(words, " "));
}

std::string ShellWords::read_arithmetic() {
  const std::size_t begin = at_;
  for (int inside = 0; at_ < text_.size(); ++at_) {
    if (peek() == ')' && inside == 0) break;
    inside += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
  }
  std::string out(text_.substr(begin, at_ - begin));
  at_ = std::min(at_ + 2, text_.size());
  return out;
}

// Bodies of here-documents are no commands.
void ShellWords::skip_here_documents() {
  for (const std::string& end : here_documents_) {
    while (at_ < text_.size()) {
      const std::size_t stop = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, stop - at_);
      at_ = std::min(stop + 1, text_.size());
      while (!line.empty() && (line.front() == '\t' || is_blank(line.back()))) {
        line = line.front() == '\t' ? line.substr(1) : line.substr(0, line.size() - 1);
      }
      if (line == end) break;
    }
  }
  here_documents_.clear();
}

void ShellWords::read_redirection() {
  const bool here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
  while (peek() == '<' || peek() == '>' || peek() == '&' || (here && peek() == '-')) ++at_;
  skip_blanks();
  bool assigned = false;
  const auto target = read_word(false, assigned);
  if (here && !target.empty()) here_documents_.push_back(target.front());
}

std::vector<std::string> ShellWords::read_word(bool assignable, bool& assigned) {
  constexpr std::string_view kEnds = " \t\r\n;|&()<>";
  Fields fields;
  const std::size_t begin = at_;
  bool plain = true;  // only characters of a name so far
  while (at_ < text_.size() && kEnds.find(peek()) == std::string_view::npos) {
    const char c = peek();
    if (c == '=' && assignable && plain && at_ > begin && is_name_start(text_[begin])) {
      const bool append = text_[at_ - 1] == '+';
      const std::string name(text_.substr(begin, at_ - begin - (append ? 1 : 0)));
      ++at_;
      read_assignment(name, append);
      assigned = true;
      return {};
    }
    plain = plain && (is_name(c) || (c == '+' && peek(1) == '='));
    if (skip_continuation()) continue;
    if (c == '\\' && at_ + 1 < text_.size()) {
      fields.add(peek(1));
      at_ += 2;
    } else if (c == '\'') {
      read_single_quoted(fields);
    } else if (c == '"') {
      read_double_quoted(fields);
    } else if (c == '$' && peek(1) == '\'') {
      read_ansi_quoted(fields);
    } else if (c == '$') {
      read_expansion(fields, false);
    } else if (c == '`') {
      ++at_;
      fields.add("`" + read_until("", "`") + "`");
    } else {
      fields.add(c);
      ++at_;
    }
  }
  return fields.take();
}

void ShellWords::read_assignment(const std::string& name, bool append) {
  const bool is_skipped = state_.mode == ShellState::Mode::kSkip;
  if (peek() == '(') {
    auto words = read_array();
    if (is_skipped) return;
    auto& array = state_.variables[name];
    if (!append) array.clear();
    array.insert(array.end(), words.begin(), words.end());
    return;
  }
  bool assigned = false;
  const auto words = read_word(false, assigned);
  if (is_skipped) return;
  std::string value = fmt::format("{}", fmt::join(words, " "));
  auto& scalar = state_.variables[name];
  if (append && !scalar.empty()) value = scalar.front() + value;
  scalar = {value};
}

std::vector<std::string> ShellWords::read_array() {
  ++at_;
  std::vector<std::string> out;
  while (at_ < text_.size() && peek() != ')') {
    if (is_blank(peek()) || peek() == '\n') {
      ++at_;
    } else if (peek() == '#') {
      skip_comment();
    } else if (!skip_continuation()) {
      bool assigned = false;
      const std::size_t before = at_;
      const auto words = read_word(false, assigned);
      out.insert(out.end(), words.begin(), words.end());
      if (at_ == before) ++at_;  // a character that no word begins with
    }
  }
  ++at_;
  return out;
}

void ShellWords::read_single_quoted(Fields& fields) {
  const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
  fields.add(text_.substr(at_ + 1, end - at_ - 1));
  at_ = std::min(end + 1, text_.size());
}

// $'...': escapes of C inside single quotes.
void ShellWords::read_ansi_quoted(Fields& fields) {
  constexpr std::string_view kLetters = "abefnrtv", kMeaning = "\a\b\x1b\f\n\r\t\v";
  std::string out;
  for (at_ += 2; at_ < text_.size() && peek() != '\''; ++at_) {
    if (peek() != '\\' || at_ + 1 >= text_.size()) {
      out += peek();
      continue;
    }
    const char c = text_[++at_];
    const std::size_t letter = kLetters.find(c);
    unsigned code = 0;
    const char* digits = text_.data() + at_ + 1;
    const std::size_t most = std::min<std::size_t>(2, text_.size() - at_ - 1);
    const auto read = std::from_chars(digits, digits + most, code, 16);
    if (c == 'x' && read.ec == std::errc()) {
      out += static_cast<char>(code);
      at_ += static_cast<std::size_t>(read.ptr - digits);
    } else {
      out += letter != kLetters.npos ? kMeaning[letter] : c;
    }
  }
  ++at_;
  fields.add(out);
}

void ShellWords::read_double_quoted(Fields& fields) {
  ++at_;
  // "${EMPTY[@]}" is no word, "" is one.
  const std::string_view rest = text_.substr(at_);
  const std::size_t close = rest.find('"');
  const bool only_array =
      rest.starts_with("$@\"") || (rest.starts_with("${") && close != std::string_view::npos &&
                                   close >= 4 && rest.substr(close - 4, 4) == "[@]}");
  if (!only_array) fields.add("");
  while (at_ < text_.size() && peek() != '"') read_quoted_character(fields);
  ++at_;
}

void ShellWords::read_quoted_character(Fields& fields) {
  constexpr std::string_view kEscaped = "$`\"\\";
  if (skip_continuation()) return;
  if (peek() == '\\' && kEscaped.find(peek(1)) != std::string_view::npos && peek(1) != '\0') {
    fields.add(peek(1));
    at_ += 2;
  } else if (peek() == '$') {
    read_expansion(fields, true);
  } else {
    fields.add(peek());
    ++at_;
  }
}

void ShellWords::put(Fields& fields, const std::vector<std::string>& values, bool quoted,
                     bool apart) {
  std::size_t characters = 0;
  for (const std::string& value : values) characters += value.size() + 1;
  if (!afford(characters)) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && apart) fields.close();
    if (i > 0 && !apart) fields.add(" ");
    if (quoted) {
      fields.add(values[i]);
    } else {
      fields.add_split(values[i]);
    }
  }
}

std::string ShellWords::read_until(std::string_view open, std::string_view close) {
  const std::size_t begin = at_;
  for (int inside = 0; at_ < text_.size();) {
    if (text_.substr(at_).starts_with(close)) {
      if (inside == 0) break;
      --inside;
      at_ += close.size();
    } else if (!open.empty() && text_.substr(at_).starts_with(open)) {
      ++inside;
      at_ += open.size();
    } else {
      ++at_;
    }
  }
  std::string out(text_.substr(begin, at_ - begin));
  at_ = std::min(at_ + close.size(), text_.size());
  return out;
}

void ShellWords::read_expansion(Fields& fields, bool quoted) {
  ++at_;
  if (peek() == '(' && peek(1) == '(') {
    at_ += 2;
    const std::string expression = read_arithmetic();
    const std::string value = shell_arithmetic(expression, state_.variables);
    fields.add(value.empty() ? "$((" + expression + "))" : value);
  } else if (peek() == '(') {
    ++at_;
    fields.add("$(" + read_until("(", ")") + ")");
  } else if (peek() == '{') {
    ++at_;
    read_braces(fields, quoted);
  } else if (is_name_start(peek())) {
    const std::size_t begin = at_;
    while (is_name(peek())) ++at_;
    read_variable(std::string(text_.substr(begin, at_ - begin)), fields, quoted);
  } else if (peek() == '@' || peek() == '*') {
    const bool apart = peek() == '@' || !quoted;
    ++at_;
    // The script's own arguments are none; a function has those of its call.
    const auto found = state_.variables.find("@");
    if (found != state_.variables.end()) put(fields, found->second, quoted, apart);
  } else if (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '#' || peek() == '?') {
    read_variable(std::string(1, peek()), fields, quoted);
    ++at_;
  } else {
    fields.add('$');
  }
}

void ShellWords::read_variable(const std::string& name, Fields& fields, bool quoted) {
  const auto found = state_.variables.find(name);
  if (found == state_.variables.end()) {
    fields.add("${" + name + "}");
  } else if (!found->second.empty()) {
    put(fields, {found->second.front()}, quoted, false);
  }
}

namespace {

std::string in_case(std::string text, bool upper) {
  for (char& c : text) {
    const auto letter = static_cast<unsigned char>(c);
    c = static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
  }
  return text;
}

// "${A%.json}", "${A##*/}": the text without what the pattern matches at one of its ends.
std::string cut(const std::string& text, std::string_view pattern, bool at_front, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    const std::size_t begin = at_front ? 0 : text.size() - length;
    if (matches_glob(pattern, std::string_view(text).substr(begin, length))) {
      return at_front ? text.substr(length) : text.substr(0, begin);
    }
  }
  return text;
}

// The value as "${NAME...}" changes it; nothing where it is of no form that is known here.
std::optional<std::string> changed(const std::string& value, std::string_view how) {
  if (how.empty()) return value;
  if (how == "^^" || how == ",,") return in_case(value, how == "^^");
  constexpr std::size_t kLongest = 256;  // cutting tries each length
  if ((how[0] != '%' && how[0] != '#') || how.find('$') != how.npos || value.size() > kLongest) {
    return std::nullopt;
  }
  const bool longest = how.size() > 1 && how[1] == how[0];
  return cut(value, how.substr(longest ? 2 : 1), how[0] == '#', longest);
}

// The length of the sign that says what stands for a variable that is unset or empty.
std::size_t default_sign(std::string_view rest) {
  for (const char* sign : {":-", ":=", ":+", ":?", "-", "=", "+", "?"}) {
    if (rest.starts_with(sign)) return std::string_view(sign).size();
  }
  return 0;
}

}  // namespace

std::string ShellWords::expanded(std::string_view text) {
  constexpr int kDeepest = 16;
  if (depth_ > kDeepest) return "";
  std::string out = ShellWords(text, state_, depth_ + 1).value();
  // A default that may hold quotes of its own: "${A:-"x"}"
  std::erase(out, '"');
  return out;
}

// `values`: those of the variable, of an array that is not asked for as a whole the first; null: it
// is unset. Returns false for another form.
bool ShellWords::put_default(std::string_view rest, const std::vector<std::string>* values,
                             bool apart, Fields& fields, bool quoted) {
  const std::size_t length = default_sign(rest);
  if (length == 0) return false;
  const bool is_empty =
      values == nullptr || values->empty() || (values->size() == 1 && values->front().empty());
  const bool is_missing = length == 2 ? is_empty : values == nullptr;
  const char sign = rest[length - 1];
  if (sign == '?') {
    if (is_missing) return false;
    put(fields, *values, quoted, apart);
  } else if (sign == '+') {
    if (!is_missing) put(fields, {expanded(rest.substr(length))}, quoted, false);
  } else if (is_missing) {
    put(fields, {expanded(rest.substr(length))}, quoted, false);
  } else {
    put(fields, *values, quoted, apart);
  }
  return true;
}

void ShellWords::read_braces(Fields& fields, bool quoted) {
  const std::string inside = read_until("{", "}");
  const bool counts = inside.size() > 1 && inside[0] == '#';
  std::size_t end = counts ? 1 : 0;
  const std::size_t begin = end;
  while (end < inside.size() && is_name(inside[end])) ++end;
  if (end == begin && end < inside.size() && inside[end] == '@') ++end;
  const std::string name = inside.substr(begin, end - begin);
  std::string_view rest = std::string_view(inside).substr(end);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]") || name == "@";
  const bool apart = rest.starts_with("[@]") || name == "@" || !quoted;
  if (all && name != "@") rest.remove_prefix(3);
  const auto found = state_.variables.find(name);
  std::vector<std::string> held;
  if (found != state_.variables.end()) held = found->second;
  if (!all && !counts && held.size() > 1) held.resize(1);
  const std::vector<std::string>* values = found == state_.variables.end() ? nullptr : &held;
  if (name.empty()) {
    fields.add("${" + inside + "}");
  } else if (counts && values != nullptr && rest.empty()) {
    const std::size_t length = values->empty() ? 0 : values->front().size();
    fields.add(fmt::format("{}", all ? values->size() : length));
  } else if (counts) {
    fields.add("${" + inside + "}");
  } else if (put_default(rest, values, all && apart, fields, quoted)) {
    const std::size_t sign = default_sign(rest);
    const bool assigns = rest[sign - 1] == '=' && (values == nullptr || sign == 2);
    if (assigns && (held.empty() || held.front().empty()) &&
        state_.mode == ShellState::Mode::kRun) {
      state_.variables[name] = {expanded(rest.substr(sign))};
    }
  } else if (values == nullptr && name != "@") {
    fields.add("${" + inside + "}");
  } else if (all && rest.empty()) {
    if (values != nullptr) put(fields, *values, quoted, apart);
  } else if (all || values == nullptr) {
    fields.add("${" + inside + "}");
  } else if (values->empty()) {
    return;
  } else if (!afford(values->front().size())) {
    return;
  } else if (const auto value = changed(values->front(), rest)) {
    put(fields, {*value}, quoted, false);
  } else {
    fields.add("${" + inside + "}");
  }
}

}  // namespace stepcast
