// SPDX-License-Identifier: Apache-2.0
#include "core/plain_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/limits.h"
#include "core/text/characters.h"

namespace stepcast {
namespace {

constexpr std::size_t kExactDigits = 18;  // so many fit 63 bits

// A product or quotient of two numbers that a double holds exactly is rounded once, as the number
// that they write is (Clinger, "How to read floating point numbers accurately", 1990).
constexpr std::uint64_t kExactMantissa = std::uint64_t{1} << 53;
constexpr std::array<double, 23> kExactPowers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

template <class Tree>
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  std::optional<Tree> whole() {
    Tree out;
    skip_blanks();
    if (!read(out, 0)) return std::nullopt;
    skip_blanks();
    if (at_ != end_) return std::nullopt;
    return out;
  }

 private:
  using Members = typename Tree::Members;
  using Array = typename Tree::Array;

  char here() const { return at_ == end_ ? '\0' : *at_; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool take(char c) {
    if (here() != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size()) return false;
    if (std::string_view(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // These say whether a value was read into `out`, which is null.
  bool read(Tree& out, std::size_t depth) {
    switch (here()) {
      case '{':
        return depth < kDeepestDocument && read_object(out, depth);
      case '[':
        return depth < kDeepestDocument && read_array(out, depth);
      case '"': {
        std::string text;
        if (!read_text(text)) return false;
        out = Tree(std::move(text));
        return true;
      }
      case 't':
        out = Tree(true);
        return take("true");
      case 'f':
        out = Tree(false);
        return take("false");
      case 'n':
        return take("null");
      default:
        return read_number(out);
    }
  }

  bool read_array(Tree& out, std::size_t depth) {
    ++at_;
    Array elements;
    skip_blanks();
    if (!take(']')) {
      elements.reserve(last_elements_);  // rows of a table are as long as the row before
      do {
        skip_blanks();
        if (!read(elements.emplace_back(), depth + 1)) return false;
        skip_blanks();
      } while (take(','));
      if (!take(']')) return false;
      last_elements_ = std::min(elements.size(), kMostReserved);
    }
    out = Tree::array_of(std::move(elements));
    return true;
  }

  bool read_object(Tree& out, std::size_t depth) {
    ++at_;
    Members members;
    skip_blanks();
    if (!take('}')) {
      members.reserve(last_members_);
      do {
        skip_blanks();
        auto& member = members.emplace_back();
        if (!read_text(member.first)) return false;
        skip_blanks();
        if (!take(':')) return false;
        skip_blanks();
        if (!read(member.second, depth + 1)) return false;
        skip_blanks();
      } while (take(','));
      if (!take('}') || !bring_in_order(members)) return false;
      last_members_ = std::min(members.size(), kMostReserved);
    }
    out = Tree::object_of(std::move(members));
    return true;
  }

  // Whether all keys differ.
  static bool bring_in_order(Members& members) {
    const auto key = [](const auto& member) -> const std::string& { return member.first; };
    if constexpr (std::is_same_v<Tree, SortedJson>) {
      if (!std::ranges::is_sorted(members, {}, key)) std::ranges::sort(members, {}, key);
      return std::ranges::adjacent_find(members, {}, key) == members.end();
    } else {
      std::vector<std::string_view> keys;
      keys.reserve(members.size());
      for (const auto& member : members) keys.push_back(member.first);
      std::ranges::sort(keys);
      return std::ranges::adjacent_find(keys) == keys.end();
    }
  }

  bool read_text(std::string& out) {
    if (!take('"')) return false;
    bool is_ascii = true;
    const char* begin = at_;
    while (at_ != end_ && *at_ != '"') {
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte < 0x20) return false;
      if (byte >= 0x80) is_ascii = false;
      if (byte == '\\') {
        out.append(begin, at_);
        ++at_;
        const char meant = escaped(here());
        if (meant == '\0') return false;
        out += meant;
        begin = at_ + 1;
      }
      ++at_;
    }
    if (at_ == end_) return false;
    out.append(begin, at_);
    ++at_;
    return is_ascii || is_utf8(out);
  }

  // Gives '\0' for an escape by number, and for what is none.
  static char escaped(char letter) {
    switch (letter) {
      case '"':
      case '\\':
      case '/':
        return letter;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      default:
        return '\0';
    }
  }

  // Takes digits, of which there is at least one, into the mantissa.
  bool take_digits(std::uint64_t& mantissa, std::size_t& digits) {
    if (!is_digit(here())) return false;
    while (is_digit(here())) {
      if (digits < kExactDigits) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*at_ - '0');
      if (mantissa > 0) ++digits;
      ++at_;
    }
    return true;
  }

  bool read_number(Tree& out) {
    const char* begin = at_;
    const bool is_negative = take('-');
    std::uint64_t mantissa = 0;
    std::size_t digits = 0;
    const bool begins_with_zero = here() == '0';
    const char* first = at_;
    if (!take_digits(mantissa, digits)) return false;
    if (begins_with_zero && at_ != first + 1) return false;
    if (here() != '.' && here() != 'e' && here() != 'E') {
      if (digits > kExactDigits) return false;  // may not fit 64 bits
      out = is_negative ? Tree(-static_cast<std::int64_t>(mantissa)) : Tree(mantissa);
      return true;
    }
    std::int64_t power = 0;
    if (take('.')) {
      const char* fraction = at_;
      if (!take_digits(mantissa, digits)) return false;
      power = fraction - at_;
    }
    if (take('e') || take('E')) {
      const bool is_small = take('-');
      if (!is_small) take('+');
      std::uint64_t written = 0;
      std::size_t count = 0;
      if (!take_digits(written, count)) return false;
      if (count > 4) return false;
      power += is_small ? -static_cast<std::int64_t>(written) : static_cast<std::int64_t>(written);
    }
    const double value = value_of({begin, at_}, mantissa, digits, power);
    if (!std::isfinite(value)) return false;
    out = Tree(is_negative ? -value : value);
    return true;
  }

  // The size of the number that `text` writes.
  static double value_of(const std::string& text, std::uint64_t mantissa, std::size_t digits,
                         std::int64_t power) {
    const auto size = static_cast<std::size_t>(std::abs(power));
    if (digits > kExactDigits || mantissa > kExactMantissa || size >= kExactPowers.size()) {
      return std::abs(std::strtod(text.c_str(), nullptr));
    }
    const auto exact = static_cast<double>(mantissa);
    return power < 0 ? exact / kExactPowers[size] : exact * kExactPowers[size];
  }

  static constexpr std::size_t kMostReserved = 64;

  const char* at_;
  const char* end_;
  std::size_t last_elements_ = 0, last_members_ = 0;
};

}  // namespace

template <class Tree>
std::optional<Tree> read_plain_json(std::string_view text) {
  return Reader<Tree>(text).whole();
}

template std::optional<Json> read_plain_json(std::string_view text);
template std::optional<SortedJson> read_plain_json(std::string_view text);

}  // namespace stepcast
