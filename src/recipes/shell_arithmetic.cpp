// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

#include "recipes/shell_state.h"

namespace stepcast {
namespace {

using Variables = ShellVariables;
using Value = std::optional<std::int64_t>;

// Degrees, counts and batches: beyond this it is no launch script, and products stay in 63 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 31;

class Expression {
 public:
  Expression(std::string_view text, const Variables& variables)
      : text_(text), variables_(variables) {}

  Value whole() {
    const Value value = disjunction();
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char wanted) {
    skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool take_sign(std::string_view wanted) {
    skip();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  static Value bounded(Value value) {
    return value && *value <= kLargest && *value >= -kLargest ? value : std::nullopt;
  }

  // A comparison is 1 where it holds, else 0.
  Value disjunction() {
    Value left = conjunction();
    while (left && take_sign("||")) {
      const Value right = conjunction();
      left = right ? Value(*left != 0 || *right != 0) : std::nullopt;
    }
    return left;
  }

  Value conjunction() {
    Value left = comparison();
    while (left && take_sign("&&")) {
      const Value right = comparison();
      left = right ? Value(*left != 0 && *right != 0) : std::nullopt;
    }
    return left;
  }

  Value comparison() {
    Value left = sum();
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!left || !take_sign(sign)) continue;
      const Value right = sum();
      if (!right) return std::nullopt;
      const std::string_view is = sign;
      left = is == "=="   ? *left == *right
             : is == "!=" ? *left != *right
             : is == "<=" ? *left <= *right
             : is == ">=" ? *left >= *right
             : is == "<"  ? *left < *right
                          : *left > *right;
      break;
    }
    return left;
  }

  Value sum() {
    Value left = product();
    while (left) {
      const bool minus = take('-');
      if (!minus && !take('+')) break;
      const Value right = product();
      left = right ? bounded(minus ? *left - *right : *left + *right) : std::nullopt;
    }
    return left;
  }

  Value product() {
    Value left = atom();
    while (left) {
      const char sign = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : '\0';
      if (sign == '\0') break;
      const Value right = atom();
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      left = bounded(sign == '*' ? *left * *right : sign == '/' ? *left / *right : *left % *right);
    }
    return left;
  }

  Value atom() {
    if (++depth_ > 64) return std::nullopt;
    if (take('(')) {
      const Value inner = disjunction();
      return take(')') ? inner : std::nullopt;
    }
    if (take('!')) {
      const Value inner = atom();
      return inner ? Value(*inner == 0) : std::nullopt;
    }
    if (take('-')) {
      const Value inner = atom();
      return inner ? Value(-*inner) : std::nullopt;
    }
    const bool dollar = take('$');
    const bool brace = dollar && take('{');
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      ++at_;
    }
    const std::string name(text_.substr(begin, at_ - begin));
    if (brace && !take('}')) return std::nullopt;
    if (!name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) && !dollar)) {
      return number(name);
    }
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.empty()) return std::nullopt;
    return number(found->second.front());
  }

  static Value number(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return bounded(value);
  }

  std::string_view text_;
  const Variables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string shell_arithmetic(std::string_view expression, const Variables& variables) {
  const Value value = Expression(expression, variables).whole();
  return value ? fmt::format("{}", *value) : std::string();
}

}  // namespace stepcast
