// SPDX-License-Identifier: Apache-2.0
#include "report/wrapped_words.h"

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

constexpr std::string_view kDot = "·";
// Behind these a word that is wider than a line may end.
constexpr std::string_view kBreaks = "/,=|+&_-:;";

bool is_number(std::string_view word) {
  const std::size_t sign = word.find_first_of("+-~$") == 0 ? 1 : 0;
  return word.size() > sign && word[sign] >= '0' && word[sign] <= '9';
}

bool is_unit(std::string_view word) {
  static constexpr std::array<std::string_view, 12> kUnits{
      "s", "ms", "us", "%", "GiB", "MiB", "GB", "GB/s", "days", "hours", "TFLOP/s", "tokens/s"};
  while (!word.empty() && std::string_view(",;:)").find(word.back()) != std::string_view::npos) {
    word.remove_suffix(1);
  }
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

std::vector<std::string> plain_words(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Words as they stay together.
std::vector<std::string> words_of(std::string_view text, std::size_t width) {
  const std::vector<std::string> words = plain_words(text);
  const bool dotted = text.find(" · ") != std::string_view::npos;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool with_unit = i > 0 && is_number(words[i - 1]) && is_unit(words[i]);
    const bool in_part = i > 0 && dotted && words[i - 1] != kDot;
    const bool joined = with_unit || in_part || (i > 0 && words[i] == kDot);
    if (joined && shown_width(out.back()) + 1 + shown_width(words[i]) <= width) {
      out.back() += " " + words[i];
    } else {
      out.push_back(words[i]);
    }
  }
  return out;
}

std::string joined(const std::vector<std::string>& glyphs, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += glyphs[i];
  return out;
}

// The first part of a word that is wider than a line, taken off it.
std::string cut_off(std::string& word, std::size_t width) {
  const std::vector<std::string> glyphs = glyphs_of(word);
  std::size_t end = width;
  for (std::size_t i = width; i > width / 2; --i) {
    if (kBreaks.find(glyphs[i - 1].back()) == std::string_view::npos) continue;
    end = i;
    break;
  }
  std::string out = joined(glyphs, 0, end);
  word = joined(glyphs, end, glyphs.size());
  return out;
}

// Takes as many items off a list as fit; nothing of a word that is none.
std::string items_of(std::string& word, std::size_t width) {
  if (std::ranges::count(word, ',') < 3) return "";
  const std::size_t end = word.rfind(',', width - 1);
  if (end == std::string::npos || end + 1 == word.size()) return "";
  std::string out = word.substr(0, end + 1);
  word.erase(0, end + 1);
  return out;
}

bool is_runners_command(std::string_view line) {
  return line.starts_with("::") || line.starts_with("##[");
}

// Calls `visit` for each character, and for each escape sequence that colours it.
template <class Visit>
void for_each_glyph(std::string_view text, const Visit& visit) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    const bool is_escape = text[i] == '\x1b';
    if (is_escape) {
      end = std::min(text.find('m', i), text.size() - 1) + 1;
    } else {
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    }
    visit(text.substr(i, end - i), is_escape);
    i = end;
  }
}

}  // namespace

std::vector<std::string> glyphs_of(std::string_view text) {
  std::vector<std::string> out;
  std::string escapes;
  for_each_glyph(text, [&](std::string_view glyph, bool is_escape) {
    if (is_escape) {
      escapes += glyph;
    } else {
      out.push_back(escapes + std::string(glyph));
      escapes.clear();
    }
  });
  if (!escapes.empty() && !out.empty()) out.back() += escapes;
  return out;
}

std::size_t shown_width(std::string_view text) {
  std::size_t out = 0;
  for_each_glyph(text, [&](std::string_view, bool is_escape) { out += is_escape ? 0 : 1; });
  return out;
}

std::size_t longest_word(std::string_view text) {
  std::size_t out = 0;
  for (const std::string& word : plain_words(text)) out = std::max(out, shown_width(word));
  return out;
}

std::vector<std::string> wrapped_words(std::string_view text, std::size_t first, std::size_t rest,
                                       WideWords wide) {
  std::vector<std::string> lines{""};
  std::size_t room = std::max<std::size_t>(first, 1);
  const auto next_line = [&] {
    lines.emplace_back();
    room = std::max<std::size_t>(rest, 1);
  };
  const auto put = [&](std::string part) {
    const bool begins = lines.size() > 1 && lines.back().empty();
    if (begins && is_runners_command(part)) part.insert(0, "\\");
    lines.back() += (lines.back().empty() ? "" : " ") + part;
  };
  for (std::string& word : words_of(text, std::min(first, rest))) {
    const std::size_t used = shown_width(lines.back());
    if (used > 0 && used + 1 + shown_width(word) > room) next_line();
    while (shown_width(word) > room) {
      std::string begin = wide == WideWords::kCut ? cut_off(word, room) : items_of(word, room);
      if (begin.empty()) break;
      put(std::move(begin));
      next_line();
    }
    put(std::move(word));
  }
  return lines;
}

}  // namespace stepcast
