// SPDX-License-Identifier: Apache-2.0
#include "recipes/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <utility>

#include "recipes/shell_words.h"

namespace stepcast {
namespace {

using Mode = ShellState::Mode;

constexpr int kDeepestNest = 64;         // commands in commands
constexpr int kDeepestCall = 16;         // functions in functions
constexpr std::size_t kMostPasses = 64;  // of one loop

// How a command ended: a test says it, another one is taken to succeed.
enum class Outcome { kTrue, kFalse, kUnknown, kDone };

Outcome outcome_of(std::optional<bool> truth) {
  return !truth ? Outcome::kUnknown : *truth ? Outcome::kTrue : Outcome::kFalse;
}

// Restores a value at the end of a scope.
template <class T>
class Kept {
 public:
  explicit Kept(T& value) : value_(value), before_(value) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() { value_ = before_; }
  const T& before() const { return before_; }

 private:
  T& value_;
  T before_;
};

class ScriptReader : public ShellWords {
 public:
  using ShellWords::ShellWords;
  void run() {
    while (!at_end()) run_list({});
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Runs commands up to one of these words, which it takes and returns; "": the text ended.
  std::string_view run_list(Ends ends);
  void run_command();
  void run_simple();
  void run_words(std::vector<std::string> words);
  bool run_compound(std::string_view word);
  void run_if();
  void run_case();
  void run_for();
  void run_rounds(const std::string& name, const std::vector<std::string>& values);
  void run_while();
  void run_double_brackets();
  void define(const std::string& name);
  void call(const std::string& body, std::vector<std::string> words);
  std::string_view plain_word() const;
  void skip_between(Ends ends);
  // The mode of what runs where a condition holds, and notes one that is not decided.
  Mode mode_where(std::optional<bool> holds, Mode outer, std::string_view condition);
  void read_link();

  Outcome outcome_ = Outcome::kDone;
  enum class Link { kNone, kAnd, kOr } link_ = Link::kNone;
  int nested_ = 0;
};

// The letters up to a blank or a sign, as they are written; a bracket that ends a list alone.
std::string_view ScriptReader::plain_word() const {
  constexpr std::string_view kSigns = " \t\r\n;|&()<>";
  if (peek() == ')') return rest().substr(0, 1);
  if (stands(";;")) return rest().substr(0, 2);
  return rest().substr(0, rest().find_first_of(kSigns));
}

void ScriptReader::skip_between(Ends ends) {
  const bool of_case = std::ranges::find(ends, ";;") != ends.end();
  for (std::size_t before = text_.size() + 1; before != at_;) {
    before = at_;
    skip_blanks();
    skip_comment();
    if (peek() == '\n') {
      ++at_;
      skip_here_documents();
    }
    if (peek() == ';' && !(of_case && stands(";;"))) ++at_;
  }
}

std::string_view ScriptReader::run_list(Ends ends) {
  const Kept<Link> link(link_);
  link_ = Link::kNone;
  outcome_ = Outcome::kDone;
  while (true) {
    skip_between(ends);
    if (at_end()) return "";
    const std::string_view word = plain_word();
    if (std::ranges::find(ends, word) != ends.end()) {
      at_ += word.size();
      if (word == ";;" && peek() == '&') ++at_;
      return word;
    }
    const std::size_t before = at_;
    run_command();
    if (at_ == before) ++at_;  // a sign that no command begins with
  }
}

Mode ScriptReader::mode_where(std::optional<bool> holds, Mode outer, std::string_view condition) {
  if (outer == Mode::kSkip || holds) return holds.value_or(true) ? outer : Mode::kSkip;
  constexpr std::size_t kLongest = 80, kMost = 64;
  std::string written;
  for (const char c : condition.substr(0, kLongest)) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space || (!written.empty() && written.back() != ' ')) written += is_space ? ' ' : c;
  }
  while (!written.empty() && (written.back() == ' ' || written.back() == ';')) written.pop_back();
  auto& undecided = state_.script.undecided;
  const bool is_new = std::ranges::find(undecided, written) == undecided.end();
  if (is_new && undecided.size() < kMost) undecided.push_back(written);
  return state_.branches == Undecided::kRun ? outer : Mode::kSkip;
}

// Takes the sign between two commands; the second hangs on the first where it is && or ||.
void ScriptReader::read_link() {
  skip_blanks();
  link_ = stands("&&") ? Link::kAnd : stands("||") ? Link::kOr : Link::kNone;
  if (link_ != Link::kNone) {
    at_ += 2;
  } else if ((peek() == ';' && !stands(";;")) || peek() == '|' || peek() == '&') {
    ++at_;
  }
}

void ScriptReader::run_command() {
  const Kept<int> nest(nested_);
  if (++nested_ > kDeepestNest) {
    ++at_;
    return;
  }
  const std::size_t begin = at_;
  const Kept<Mode> mode(state_.mode);
  const Outcome before = outcome_;
  if (link_ != Link::kNone) {
    std::optional<bool> holds;
    if (before != Outcome::kUnknown) holds = (before == Outcome::kFalse) == (link_ == Link::kOr);
    const std::size_t line = text_.rfind('\n', begin) + 1;
    state_.mode = mode_where(holds, state_.mode, since(line));
  }
  const bool is_skipped = state_.mode == Mode::kSkip && mode.before() != Mode::kSkip;
  if (!run_compound(plain_word())) run_simple();
  if (is_skipped) outcome_ = before;
  read_link();
}

// Whether the word begins a command of commands, which then ran.
bool ScriptReader::run_compound(std::string_view word) {
  const auto take = [&] { at_ += word.size(); };
  if (stands("((")) {
    at_ += 2;
    const std::string value = shell_arithmetic(read_arithmetic(), state_.variables);
    outcome_ = value.empty() ? Outcome::kUnknown : outcome_of(value != "0");
  } else if (peek() == '(') {
    ++at_;
    run_list({")"});
  } else if (word == "{") {
    take();
    run_list({"}"});
  } else if (word == "if") {
    take();
    run_if();
  } else if (word == "case") {
    take();
    run_case();
  } else if (word == "for" || word == "select") {
    take();
    run_for();
  } else if (word == "while" || word == "until") {
    run_while();
  } else if (word == "[[") {
    take();
    run_double_brackets();
  } else if (word == "!") {
    take();
    skip_blanks();
    if (!run_compound(plain_word())) run_simple();
    outcome_ = outcome_ == Outcome::kTrue    ? Outcome::kFalse
               : outcome_ == Outcome::kFalse ? Outcome::kTrue
                                             : Outcome::kUnknown;
  } else if (word == "function") {
    take();
    skip_blanks();
    const std::string name(plain_word());
    at_ += name.size();
    define(name);
  } else {
    return false;
  }
  return true;
}

void ScriptReader::run_if() {
  const Kept<Mode> mode(state_.mode);
  Mode left = mode.before();  // of the branches that are left
  while (true) {
    state_.mode = left;
    const std::size_t begin = at_;
    run_list({"then"});
    std::optional<bool> holds;
    if (outcome_ == Outcome::kTrue || outcome_ == Outcome::kFalse) {
      holds = outcome_ == Outcome::kTrue;
    }
    state_.mode = mode_where(holds, left, since(begin, std::string_view("then").size()));
    if (holds.value_or(false)) {
      left = Mode::kSkip;
    } else if (!holds) {
      left = state_.mode;
    }
    const std::string_view end = run_list({"elif", "else", "fi"});
    if (end == "elif") continue;
    state_.mode = left;
    if (end == "else") run_list({"fi"});
    break;
  }
  outcome_ = Outcome::kDone;
}

void ScriptReader::run_case() {
  skip_blanks();
  const std::size_t begin = at_;
  const std::string value = read_whole_word();
  const std::string written = fmt::format("case {}", since(begin));
  skip_between({});
  if (plain_word() == "in") at_ += 2;
  const Kept<Mode> mode(state_.mode);
  Mode left = mode.before();
  while (!at_end()) {
    skip_between({});
    if (plain_word() == "esac") {
      at_ += 4;
      break;
    }
    if (peek() == '(') ++at_;
    std::optional<bool> holds = false;
    while (!at_end() && peek() != ')') {
      skip_between({});
      const std::size_t before = at_;
      const std::string pattern = read_whole_word();
      if (!is_known(pattern) || (!is_known(value) && pattern != "*")) {
        holds = holds == true ? holds : std::nullopt;
      } else if (matches_glob(pattern, value)) {
        holds = true;
      }
      skip_blanks();
      if (peek() == '|' || (at_ == before && peek() != ')')) ++at_;
    }
    ++at_;
    state_.mode = mode_where(holds, left, written);
    if (holds.value_or(false)) {
      left = Mode::kSkip;
    } else if (!holds) {
      left = state_.mode;
    }
    if (run_list({";;", "esac"}) != ";;") break;
  }
  outcome_ = Outcome::kDone;
}

void ScriptReader::run_for() {
  skip_blanks();
  const std::size_t begin = at_;
  if (stands("((")) {
    at_ += 2;
    read_arithmetic();
    skip_between({});
    if (plain_word() == "do") at_ += 2;
    const Kept<Mode> mode(state_.mode);
    state_.mode = mode_where(std::nullopt, state_.mode, "for ((...))");
    run_list({"done"});
    return;
  }
  const std::string name(plain_word());
  at_ += name.size();
  skip_between({});
  std::vector<std::string> values;
  if (plain_word() == "in") {
    at_ += 2;
    while (!at_end() && peek() != ';' && peek() != '\n') {
      skip_blanks();
      bool assigned = false;
      const std::size_t before = at_;
      const auto words = read_word(false, assigned);
      values.insert(values.end(), words.begin(), words.end());
      skip_blanks();
      if (at_ == before) ++at_;
    }
  } else if (const auto own = state_.variables.find("@"); own != state_.variables.end()) {
    values = own->second;
  }
  const std::string written = fmt::format("for {}", since(begin));
  skip_between({});
  if (plain_word() == "do") at_ += 2;
  const bool known = values.size() <= kMostPasses && std::ranges::all_of(values, is_known);
  if (known) return run_rounds(name, values);
  const Kept<Mode> mode(state_.mode);
  state_.mode = mode_where(std::nullopt, state_.mode, written);
  if (state_.mode == Mode::kRun) state_.variables.erase(name);
  run_list({"done"});
}

void ScriptReader::run_rounds(const std::string& name, const std::vector<std::string>& values) {
  const std::size_t begin = at_;
  if (values.empty() || state_.mode == Mode::kSkip) {
    const Kept<Mode> mode(state_.mode);
    state_.mode = Mode::kSkip;
    run_list({"done"});
  } else {
    for (const std::string& value : values) {
      at_ = begin;
      state_.variables[name] = {value};
      run_list({"done"});
      if (!afford(at_ - begin)) break;
    }
  }
  outcome_ = Outcome::kDone;
}

// A loop over the script's own arguments has no round: there are none. Another one has one.
void ScriptReader::run_while() {
  const std::size_t begin = at_;
  at_ += 5;
  run_list({"do"});
  const std::string_view written = since(begin, std::string_view("do").size());
  const bool over_arguments =
      written.find("$#") != written.npos && state_.variables.count("#") == 0;
  std::optional<bool> holds;
  if (over_arguments || (outcome_ == Outcome::kFalse && written.starts_with("while")))
    holds = false;
  const Kept<Mode> mode(state_.mode);
  state_.mode = mode_where(holds, state_.mode, written);
  run_list({"done"});
  outcome_ = Outcome::kDone;
}

void ScriptReader::run_double_brackets() {
  std::vector<std::string> words;
  while (!at_end()) {
    skip_blanks();
    if (peek() == '\n') ++at_;
    skip_blanks();
    if (plain_word() == "]]") {
      at_ += 2;
      break;
    }
    const std::size_t sign = stands("&&") || stands("||")                                       ? 2
                             : peek() == '(' || peek() == ')' || peek() == '<' || peek() == '>' ? 1
                                                                                                : 0;
    const std::size_t before = at_;
    if (sign > 0) {
      words.emplace_back(rest().substr(0, sign));
      at_ += sign;
    } else if (!words.empty() && words.back() == "=~") {
      at_ = std::min(text_.find_first_of(" \t\n", at_), text_.size());
      words.emplace_back(since(before));
    } else {
      words.push_back(read_whole_word());
    }
    if (at_ == before) ++at_;
  }
  outcome_ = outcome_of(shell_test(words, true, state_.variables));
}

void ScriptReader::run_simple() {
  static const std::set<std::string> stripped = {"then",  "else",     "do",   "export",
                                                 "local", "readonly", "exec", "time"};
  std::vector<std::string> words;
  bool assignable = true, assigned_any = false;
  while (!at_end()) {
    skip_blanks();
    skip_comment();
    const char c = peek();
    if (c == '\n' || c == ';' || c == '|' || c == ')' || (c == '&' && peek(1) != '>')) break;
    if (c == '(') {
      skip_blanks();
      if (words.size() != 1) break;
      return define(words.front());
    }
    if (c == '<' || c == '>' || c == '&') {
      read_redirection();
      continue;
    }
    if (at_end()) break;
    bool assigned = false;
    const std::size_t before = at_;
    auto found = read_word(assignable, assigned);
    assigned_any = assigned_any || assigned;
    if (assigned) continue;
    if (at_ == before) ++at_;
    // The number of a redirected stream: 2>
    if (found.size() == 1 && (peek() == '>' || peek() == '<') &&
        std::all_of(found[0].begin(), found[0].end(),
                    [](unsigned char d) { return std::isdigit(d); })) {
      continue;
    }
    if (words.empty() && found.size() == 1 && stripped.count(found[0]) > 0) continue;
    words.insert(words.end(), found.begin(), found.end());
    assignable = words.empty() || words.front() == "declare" || words.front() == "typeset";
  }
  outcome_ = assigned_any ? Outcome::kTrue : Outcome::kDone;
  if (!words.empty()) run_words(std::move(words));
}

void ScriptReader::run_words(std::vector<std::string> words) {
  const std::string& name = words.front();
  outcome_ = Outcome::kDone;
  if (name == "[" || name == "test") {
    if (name == "[" && words.back() == "]") words.pop_back();
    words.erase(words.begin());
    outcome_ = outcome_of(shell_test(words, false, state_.variables));
  } else if (name == "true" || name == ":") {
    outcome_ = Outcome::kTrue;
  } else if (name == "false") {
    outcome_ = Outcome::kFalse;
  } else if (const auto body = state_.functions.find(name); body != state_.functions.end()) {
    state_.named.insert(name);
    if (state_.mode == Mode::kRun) call(body->second, std::move(words));
  } else if (state_.mode == Mode::kRun) {
    state_.script.commands.push_back(std::move(words));
  } else {
    state_.named.insert(name);
  }
}

// Behind a function's name: its body is kept until it is called.
void ScriptReader::define(const std::string& name) {
  skip_blanks();
  if (peek() == '(') {
    ++at_;
    skip_blanks();
    if (peek() == ')') ++at_;
  }
  skip_between({});
  if (plain_word() != "{") return;
  ++at_;
  const std::size_t begin = at_;
  const Kept<Mode> mode(state_.mode);
  state_.mode = Mode::kSkip;
  const bool closed = run_list({"}"}) == "}";
  const std::string_view body = since(begin, closed ? 1 : 0);
  if (mode.before() == Mode::kRun && afford(body.size())) state_.functions[name] = body;
}

void ScriptReader::call(const std::string& body, std::vector<std::string> words) {
  if (depth_ >= kDeepestCall || !afford(body.size())) return;
  ShellVariables own;
  words.erase(words.begin());
  for (std::size_t i = 0; i < 9 && i < words.size(); ++i)
    own[fmt::format("{}", i + 1)] = {words[i]};
  own["#"] = {fmt::format("{}", words.size())};
  own["@"] = std::move(words);
  for (auto& [name, value] : own) std::swap(state_.variables[name], value);
  const std::string text = body;  // a call may define its function anew
  ScriptReader(text, state_, depth_ + 1).run();
  for (auto& [name, value] : own) {
    if (value.empty()) {
      state_.variables.erase(name);
    } else {
      state_.variables[name] = std::move(value);
    }
  }
  outcome_ = Outcome::kDone;
}

// Names of what settings of NCCL and CUDA are in.
bool is_of_environment(const std::string& name) {
  return name.starts_with("NCCL_") || name.starts_with("CUDA_") || name.starts_with("TORCH_NCCL_");
}

// The settings of a command: each flag with the words behind it.
std::set<std::string> settings_in(const std::vector<std::string>& command) {
  std::set<std::string> out;
  std::string one;
  for (const std::string& word : command) {
    if (!is_known(word)) continue;  // a variable that another branch sets
    if (word.starts_with("-") && !one.empty()) out.insert(std::exchange(one, ""));
    if (word.starts_with("-") || !one.empty()) one += (one.empty() ? "" : " ") + word;
  }
  if (!one.empty()) out.insert(one);
  return out;
}

}  // namespace

ShellScript read_shell(std::string_view text, const std::map<std::string, std::string>& variables,
                       Undecided branches) {
  ShellState state;
  state.branches = branches;
  for (const auto& [name, value] : variables) state.variables[name] = {value};
  ScriptReader(text, state, 0).run();
  // A function that nothing calls is called by means that are not seen, as srun's `bash -c
  // "$(declare -f)"`.
  const auto functions = state.functions;
  for (const auto& [name, body] : functions) {
    if (state.named.count(name) == 0) ScriptReader(body, state, 1).run();
  }
  // `bash -c "..."` and run_cmd="python ..." hold a command in one word.
  for (std::size_t i = 0; i < state.script.commands.size() && i < 256; ++i) {
    const auto words = state.script.commands[i];
    for (const std::string& word : words) {
      const bool command = word.find(" --") != std::string::npos && !word.starts_with("-");
      if (command && words.size() > 1) ScriptReader(word, state, 1).run();
    }
  }
  for (const auto& [name, values] : state.variables) {
    if (is_of_environment(name) && values.size() == 1) {
      state.script.environment[name] = values.front();
    }
  }
  return std::move(state.script);
}

std::vector<std::string> undecided_settings(const std::vector<std::string>& command,
                                            const std::vector<std::string>& left_out) {
  const auto with = settings_in(command), without = settings_in(left_out);
  std::vector<std::string> out;
  std::ranges::set_difference(with, without, std::back_inserter(out));
  return out;
}

}  // namespace stepcast
