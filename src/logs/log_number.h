// SPDX-License-Identifier: Apache-2.0
// Numbers as logs print them, found by the label beside them and never by their place.
#pragma once

#include <optional>
#include <string_view>

namespace stepcast {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// The number that a text begins with: "10,050", "-1.2E-05". "nan", "inf", "N/A" and "None" give no
// number (NaN). Nothing where the text begins otherwise.
std::optional<double> leading_number(std::string_view text);

// The number behind a label that is a word of its own; blanks, colons, equals signs and quotes may
// stand between. The first label that a number follows counts.
std::optional<double> number_behind(std::string_view line, std::string_view label);

// The number in front of a unit: "14.62s/it".
std::optional<double> number_before(std::string_view line, std::string_view unit);

}  // namespace stepcast
