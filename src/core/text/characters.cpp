// SPDX-License-Identifier: Apache-2.0
#include "core/text/characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace stepcast {
namespace {

struct CodePoint {
  std::size_t length = 0;  // in bytes; 0: not UTF-8
  char32_t value = 0;
};

CodePoint code_point_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t value = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  const bool valid = value >= kLeast[length] && value <= 0x10FFFF && !surrogate;
  return valid ? CodePoint{length, value} : CodePoint{};
}

struct Range {
  char32_t first, last;
};

// Unicode 15, Bidi_Control, then marks that have no width and separate nothing: the byte order
// mark, the annotations between lines, and the tags.
constexpr std::array kHidden{Range{0x061C, 0x061C},  Range{0x200E, 0x200F}, Range{0x202A, 0x202E},
                             Range{0x2066, 0x2069},  Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB},
                             Range{0xE0000, 0xE007F}};

CharacterKind kind_of(char32_t value) {
  if (value == '\t') return CharacterKind::kTab;
  if (value == '\n') return CharacterKind::kLineFeed;
  const bool separates = value == 0x2028 || value == 0x2029;
  if (value < 0x20 || (value >= 0x7F && value < 0xA0) || separates) return CharacterKind::kControl;
  const bool hidden = std::any_of(kHidden.begin(), kHidden.end(), [&](const Range& range) {
    return value >= range.first && value <= range.last;
  });
  if (hidden) return CharacterKind::kHidden;
  const bool none = (value & 0xFFFE) == 0xFFFE || (value >= 0xFDD0 && value <= 0xFDEF);
  return none ? CharacterKind::kInvalid : CharacterKind::kShown;
}

}  // namespace

Character first_character(std::string_view text) {
  const CodePoint next = code_point_at(text);
  if (next.length == 0) {
    return {text.substr(0, 1), static_cast<unsigned char>(text.front()), CharacterKind::kInvalid};
  }
  return {text.substr(0, next.length), next.value, kind_of(next.value)};
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint next = code_point_at(text);
    if (next.length == 0) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string with_utf8_alone(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = code_point_at(text).length;
    out += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// Two thirds of the room are for the beginning. No character is cut in two.
std::string shortened(std::string_view text, std::size_t most) {
  constexpr std::string_view kGap = "...";
  if (text.size() <= most) return std::string(text);
  const std::size_t room = most - std::min(most, kGap.size());
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  std::size_t end = room - room / 3;
  while (end > 0 && continues(end)) --end;
  std::size_t begin = text.size() - room / 3;
  while (begin < text.size() && continues(begin)) ++begin;
  return fmt::format("{}{}{}", text.substr(0, end), kGap, text.substr(begin));
}

std::string shown_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&](const Character& next) {
    const bool stays = next.kind == CharacterKind::kShown || next.kind == CharacterKind::kTab ||
                       next.kind == CharacterKind::kLineFeed;
    out += stays ? next.bytes : kReplacement;
  });
  return out;
}

}  // namespace stepcast
