// SPDX-License-Identifier: Apache-2.0
// Text as characters and words, for lines of a limited width. One code point is one column; escapes
// of ANSI that color a line take none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// Code points, each with the escapes before it.
std::vector<std::string> glyphs_of(std::string_view text);

// Lines of at most `first` columns, then `rest`. A word stays whole where it fits into a line, a
// number with its unit, a list without blanks breaks behind its commas, and a part between " · "
// with itself. No line begins as a command of a runner of CI does.
enum class WideWords { kCut, kKept };  // what is wider than a line
std::vector<std::string> wrapped_words(std::string_view text, std::size_t first, std::size_t rest,
                                       WideWords wide);

// The widest that wrapping would keep whole.
std::size_t longest_word(std::string_view text);

std::size_t shown_width(std::string_view text);  // without escapes of ANSI

}  // namespace stepcast
