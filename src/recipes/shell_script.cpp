// SPDX-License-Identifier: Apache-2.0
#include "recipes/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>

namespace stepcast {
namespace {

using Variables = std::map<std::string, std::vector<std::string>>;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

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
  const std::string& current() const { return current_; }

 private:
  std::vector<std::string> done_;
  std::string current_;
  bool open_ = false;
};

class Reader {
 public:
  // `expanded` counts the characters that variables expanded to, over all readers of a script.
  Reader(std::string_view text, Variables& variables, ShellScript& script, std::size_t& expanded,
         int depth)
      : text_(text), variables_(variables), script_(script), expanded_(expanded), depth_(depth) {}

  void run() {
    while (at_ < text_.size()) read_command();
  }
  // The whole text as one quoted value.
  std::string value() {
    Fields fields;
    while (at_ < text_.size()) read_quoted_character(fields);
    const auto words = fields.take();
    return fmt::format("{}", fmt::join(words, " "));
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool skip_continuation() {
    if (peek() != '\\') return false;
    const std::size_t length = peek(1) == '\n' ? 2 : peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
    at_ += length;
    return length > 0;
  }
  void skip_blanks() {
    while (is_blank(peek()) || skip_continuation()) at_ += is_blank(peek()) ? 1 : 0;
  }
  void skip_comment() {
    if (peek() != '#') return;
    while (at_ < text_.size() && peek() != '\n') ++at_;
  }

  void read_command();
  std::vector<std::string> read_word(bool assignable, bool& assigned);
  void read_assignment(const std::string& name, bool append);
  std::vector<std::string> read_array();
  void read_redirection();
  void skip_here_documents();
  void read_single_quoted(Fields& fields);
  void read_ansi_quoted(Fields& fields);
  void read_double_quoted(Fields& fields);
  void read_quoted_character(Fields& fields);
  void read_expansion(Fields& fields, bool quoted);
  void read_braces(Fields& fields, bool quoted);
  std::string read_until(std::string_view open, std::string_view close);
  void put(Fields& fields, const std::vector<std::string>& values, bool quoted, bool apart);

  std::string_view text_;
  Variables& variables_;
  ShellScript& script_;
  std::size_t& expanded_;
  int depth_;
  std::size_t at_ = 0;
  std::vector<std::string> here_documents_;
};

// Bodies of here-documents are no commands.
void Reader::skip_here_documents() {
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

void Reader::read_redirection() {
  const bool here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
  while (peek() == '<' || peek() == '>' || peek() == '&' || (here && peek() == '-')) ++at_;
  skip_blanks();
  bool assigned = false;
  const auto target = read_word(false, assigned);
  if (here && !target.empty()) here_documents_.push_back(target.front());
}

void Reader::read_command() {
  static const std::set<std::string> stripped = {"then",   "else",  "do",       "{",    "!",
                                                 "export", "local", "readonly", "exec", "time"};
  static const std::set<std::string> branching = {"if", "elif", "for", "while", "until", "case"};
  std::vector<std::string> words;
  bool assignable = true;
  while (at_ < text_.size()) {
    skip_blanks();
    skip_comment();
    const char c = peek();
    if (c == '\n') {
      ++at_;
      skip_here_documents();
      break;
    }
    if (c == ';' || c == '|' || c == '(' || c == ')' || (c == '&' && peek(1) != '>')) {
      ++at_;
      break;
    }
    if (c == '<' || c == '>' || c == '&') {
      read_redirection();
      continue;
    }
    if (c == '\0' && at_ >= text_.size()) break;
    bool assigned = false;
    auto found = read_word(assignable, assigned);
    if (assigned) continue;
    // The number of a redirected stream: 2>
    if (found.size() == 1 && (peek() == '>' || peek() == '<') &&
        std::all_of(found[0].begin(), found[0].end(),
                    [](unsigned char d) { return std::isdigit(d); })) {
      continue;
    }
    if (words.empty() && found.size() == 1 && branching.count(found[0]) > 0) {
      script_.branches = true;
      if (found[0] == "if" || found[0] == "elif" || found[0] == "while") continue;
    }
    if (words.empty() && found.size() == 1 && stripped.count(found[0]) > 0) continue;
    words.insert(words.end(), found.begin(), found.end());
    assignable = words.empty() || words.front() == "declare";
  }
  if (!words.empty()) script_.commands.push_back(std::move(words));
}

std::vector<std::string> Reader::read_word(bool assignable, bool& assigned) {
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

void Reader::read_assignment(const std::string& name, bool append) {
  if (peek() == '(') {
    auto words = read_array();
    auto& array = variables_[name];
    if (!append) array.clear();
    array.insert(array.end(), words.begin(), words.end());
    return;
  }
  bool assigned = false;
  const auto words = read_word(false, assigned);
  std::string value = fmt::format("{}", fmt::join(words, " "));
  auto& scalar = variables_[name];
  if (append && !scalar.empty()) value = scalar.front() + value;
  scalar = {value};
}

std::vector<std::string> Reader::read_array() {
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

void Reader::read_single_quoted(Fields& fields) {
  const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
  fields.add(text_.substr(at_ + 1, end - at_ - 1));
  at_ = std::min(end + 1, text_.size());
}

// $'...': escapes of C inside single quotes.
void Reader::read_ansi_quoted(Fields& fields) {
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

void Reader::read_double_quoted(Fields& fields) {
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

void Reader::read_quoted_character(Fields& fields) {
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

void Reader::put(Fields& fields, const std::vector<std::string>& values, bool quoted, bool apart) {
  for (const std::string& value : values) expanded_ += value.size() + 1;
  if (expanded_ > kMostExpanded) {
    script_.too_large = true;
    at_ = text_.size();
    return;
  }
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

// Reads up to `close`; pairs of open and close inside belong to it.
std::string Reader::read_until(std::string_view open, std::string_view close) {
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

void Reader::read_expansion(Fields& fields, bool quoted) {
  ++at_;
  if (peek() == '(' && peek(1) == '(') {
    at_ += 2;
    const std::size_t begin = at_;
    for (int inside = 0; at_ < text_.size(); ++at_) {
      if (peek() == ')' && inside == 0) break;
      inside += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    }
    const std::string expression(text_.substr(begin, at_ - begin));
    at_ = std::min(at_ + 2, text_.size());
    const std::string value = shell_arithmetic(expression, variables_);
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
    const std::string name(text_.substr(begin, at_ - begin));
    const auto found = variables_.find(name);
    if (found == variables_.end()) {
      fields.add("${" + name + "}");
    } else if (!found->second.empty()) {
      put(fields, {found->second.front()}, quoted, false);
    }
  } else if (peek() == '@' || peek() == '*') {
    ++at_;  // the script's own arguments: it is read as started without
  } else if (std::isdigit(static_cast<unsigned char>(peek()))) {
    fields.add(fmt::format("${{{}}}", peek()));
    ++at_;
  } else {
    fields.add('$');
  }
}

void Reader::read_braces(Fields& fields, bool quoted) {
  const std::string inside = read_until("{", "}");
  std::size_t end = 0;
  while (end < inside.size() && is_name(inside[end])) ++end;
  const std::string name = inside.substr(0, end);
  std::string_view rest = std::string_view(inside).substr(end);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  const bool apart = rest.starts_with("[@]");
  if (all) rest.remove_prefix(3);
  const auto found = variables_.find(name);
  const bool empty = found == variables_.end() || found->second.empty() ||
                     (found->second.size() == 1 && found->second.front().empty());
  const std::size_t dash = rest.starts_with(":-") || rest.starts_with(":=") ? 2
                           : rest.starts_with("-")                          ? 1
                                                                            : 0;
  if (dash > 0) {
    if (!empty) return put(fields, found->second, quoted, apart || !quoted);
    if (depth_ > 16) return;
    Reader inner(rest.substr(dash), variables_, script_, expanded_, depth_ + 1);
    std::string value = inner.value();
    // A default that may hold quotes of its own: "${A:-"x"}"
    std::erase(value, '"');
    return put(fields, {value}, quoted, false);
  }
  if (!rest.empty() || name.empty() || found == variables_.end()) {
    fields.add("${" + inside + "}");
  } else if (all) {
    put(fields, found->second, quoted, apart || !quoted);
  } else if (!found->second.empty()) {
    put(fields, {found->second.front()}, quoted, false);
  }
}

}  // namespace

ShellScript read_shell(std::string_view text, const std::map<std::string, std::string>& variables) {
  ShellScript script;
  Variables known;
  for (const auto& [name, value] : variables) known[name] = {value};
  std::size_t expanded = 0;
  Reader(text, known, script, expanded, 0).run();
  // `bash -c "..."` and run_cmd="python ..." hold a command in one word.
  for (std::size_t i = 0; i < script.commands.size() && i < 256; ++i) {
    const auto words = script.commands[i];
    for (const std::string& word : words) {
      const bool command = word.find(" --") != std::string::npos && !word.starts_with("-");
      if (command && words.size() > 1) Reader(word, known, script, expanded, 1).run();
    }
  }
  return script;
}

}  // namespace stepcast
