// SPDX-License-Identifier: Apache-2.0
#include "logs/log_number.h"

#include <charconv>
#include <limits>
#include <string>

namespace stepcast {
namespace {

constexpr std::size_t kLongestNumber = 40;

bool is_number_letter(char c) {
  return is_digit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

// Without the commas between groups of three digits.
std::string digits_of(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size() && out.size() < kLongestNumber; ++at) {
    const char c = text[at];
    const bool groups = c == ',' && at > 0 && is_digit(text[at - 1]) && at + 3 < text.size() &&
                        is_digit(text[at + 1]) && is_digit(text[at + 2]) && is_digit(text[at + 3]);
    if (groups && out.find('.') == std::string::npos) continue;
    if (!is_number_letter(c)) break;
    out += c;
  }
  return out;
}

}  // namespace

std::optional<double> leading_number(std::string_view text) {
  for (const std::string_view none : {"nan", "NaN", "inf", "-inf", "N/A", "None", "null"}) {
    if (text.starts_with(none) && (text.size() == none.size() || !is_word(text[none.size()]))) {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  const std::string digits = digits_of(text);
  const char* begin = digits.data();
  if (!digits.empty() && digits[0] == '+') ++begin;
  double value = 0;
  const auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), value);
  if (error != std::errc() || end == begin) return std::nullopt;
  return value;
}

std::optional<double> number_behind(std::string_view line, std::string_view label) {
  constexpr std::string_view kBetween = " \t:='\"[";
  for (std::size_t at = line.find(label); at != std::string_view::npos;
       at = line.find(label, at + 1)) {
    const bool begins = at == 0 || !is_word(label[0]) || !is_word(line[at - 1]);
    std::size_t value = at + label.size();
    // Behind a word a number needs a mark between them.
    const bool is_apart = value < line.size() && (!is_word(label.back()) || !is_word(line[value]));
    if (!begins || !is_apart) continue;
    value = line.find_first_not_of(kBetween, value);
    if (value == std::string_view::npos) return std::nullopt;
    if (const auto number = leading_number(line.substr(value))) return number;
  }
  return std::nullopt;
}

std::optional<double> number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.rfind(unit);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && end - begin < kLongestNumber && line[begin - 1] == ' ') --begin;
  while (begin > 0 && end - begin < kLongestNumber &&
         (is_number_letter(line[begin - 1]) || line[begin - 1] == ',')) {
    --begin;
  }
  return leading_number(line.substr(begin, end - begin));
}

}  // namespace stepcast
