// SPDX-License-Identifier: Apache-2.0
// Tells what each character of a text is to those who show it.
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

enum class CharacterKind {
  kShown,
  kTab,
  kLineFeed,
  kControl,  // of C0, C1 and DEL, and the separators of lines and paragraphs
  kHidden,   // turns the direction of what follows, or takes no room: shows another text than it is
  kInvalid,  // a byte that is not UTF-8, or a code point that is no character
};

struct Character {
  std::string_view bytes;
  char32_t value = 0;  // of a byte that is not UTF-8, the byte
  CharacterKind kind = CharacterKind::kShown;
};

// The first character of a text that is not empty.
Character first_character(std::string_view text);

// Calls `with(character)` for each.
template <class With>
void for_each_character(std::string_view text, With with) {
  while (!text.empty()) {
    const Character next = first_character(text);
    with(next);
    text.remove_prefix(next.bytes.size());
  }
}

bool is_utf8(std::string_view text);
std::string with_utf8_alone(std::string_view text);  // U+FFFD for each byte of another code

std::string lower_case(std::string_view text);  // letters of ASCII alone

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The text in at most `most` bytes: "..." stands for the middle of a longer one.
std::string shortened(std::string_view text, std::size_t most);

// The text with U+FFFD in the place of each control, hidden or invalid character. Tabs and line
// feeds stay.
std::string shown_characters(std::string_view text);

}  // namespace stepcast
