// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdint>

#include "recipes/shell_state.h"

namespace stepcast {
namespace {

using Truth = std::optional<bool>;

Truth negated(Truth a) { return a ? Truth(!*a) : a; }
Truth both(Truth a, Truth b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? Truth(true) : std::nullopt;
}
Truth either(Truth a, Truth b) { return negated(both(negated(a), negated(b))); }

constexpr int kDeepestTest = 64;  // brackets in brackets

class Test {
 public:
  Test(const std::vector<std::string>& words, bool is_double, const ShellVariables& variables)
      : words_(words), is_double_(is_double), variables_(variables) {}

  Truth whole() {
    const Truth out = disjunction();
    return at_ == words_.size() ? out : std::nullopt;
  }

 private:
  bool take(std::string_view double_word, std::string_view single_word) {
    const std::string_view wanted = is_double_ ? double_word : single_word;
    if (at_ >= words_.size() || words_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  Truth disjunction() {
    Truth out = conjunction();
    while (take("||", "-o")) out = either(out, conjunction());
    return out;
  }
  Truth conjunction() {
    Truth out = negation();
    while (take("&&", "-a")) out = both(out, negation());
    return out;
  }
  Truth negation() {
    if (++depth_ > kDeepestTest) return std::nullopt;
    if (take("!", "!")) return negated(negation());
    if (is_double_ && take("(", "")) {
      const Truth out = disjunction();
      return take(")", "") ? out : std::nullopt;
    }
    return primary();
  }
  Truth primary() {
    if (at_ >= words_.size()) return std::nullopt;
    const std::string& first = words_[at_++];
    const bool more = at_ < words_.size();
    if (more && is_binary(words_[at_]) && at_ + 1 < words_.size()) {
      const std::string& sign = words_[at_];
      at_ += 2;
      return compared(first, sign, words_[at_ - 1]);
    }
    if (more && first.size() == 2 && first[0] == '-') return property(first[1], words_[at_++]);
    return is_known(first) ? Truth(!first.empty()) : std::nullopt;
  }
  static bool is_binary(const std::string& word) {
    for (const char* sign : {"=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt",
                             "-ge", "-nt", "-ot", "-ef"}) {
      if (word == sign) return true;
    }
    return false;
  }
  Truth property(char which, const std::string& of) const {
    if (which == 'v') return variables_.count(of) > 0 ? Truth(true) : std::nullopt;
    if ((which != 'z' && which != 'n') || !is_known(of)) return std::nullopt;  // files
    return (which == 'z') == of.empty();
  }
  Truth compared(const std::string& left, const std::string& sign, const std::string& right) const {
    if (!is_known(left) || !is_known(right)) return std::nullopt;
    if (sign == "=" || sign == "==" || sign == "!=") {
      const bool equal = is_double_ ? matches_glob(right, left) : left == right;
      return equal == (sign != "!=");
    }
    const auto a = number(left), b = number(right);
    if (sign.size() != 3 || sign[0] != '-' || !a || !b) return std::nullopt;
    if (sign == "-eq") return *a == *b;
    if (sign == "-ne") return *a != *b;
    if (sign == "-lt") return *a < *b;
    if (sign == "-le") return *a <= *b;
    if (sign == "-gt") return *a > *b;
    return sign == "-ge" ? Truth(*a >= *b) : std::nullopt;
  }
  std::optional<std::int64_t> number(const std::string& text) const {
    const std::string found = shell_arithmetic(text, variables_);
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), out);
    return error == std::errc() && !found.empty() ? std::optional(out) : std::nullopt;
  }

  const std::vector<std::string>& words_;
  bool is_double_;
  const ShellVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// Whether what begins at `at` is a letter, "?" or "[...]" that matches the letter; moves behind it.
bool matches_one(std::string_view pattern, char letter, std::size_t& at) {
  if (at >= pattern.size()) return false;
  const std::size_t close = pattern[at] == '[' ? pattern.find(']', at + 2) : pattern.npos;
  if (close == pattern.npos) {
    const char wanted = pattern[at++];
    return wanted == '?' || wanted == letter;
  }
  std::string_view set = pattern.substr(at + 1, close - at - 1);
  at = close + 1;
  const bool without = set.front() == '!' || set.front() == '^';
  if (without) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    found = found || (is_range ? set[i] <= letter && letter <= set[i + 2] : set[i] == letter);
    if (is_range) i += 2;
  }
  return found != without;
}

}  // namespace

bool is_known(std::string_view text) {
  for (const char* mark : {"${", "$(", "`"}) {
    if (text.find(mark) != std::string_view::npos) return false;
  }
  return true;
}

// A star takes as little as it can, and more where what follows it does not match.
bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, tried = 0;
  while (t < text.size()) {
    std::size_t behind = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (matches_one(pattern, text[t], behind)) {
      p = behind;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<bool> shell_test(const std::vector<std::string>& words, bool double_brackets,
                               const ShellVariables& variables) {
  return Test(words, double_brackets, variables).whole();
}

}  // namespace stepcast
