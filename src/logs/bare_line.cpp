// SPDX-License-Identifier: Apache-2.0
#include "logs/bare_line.h"

#include "logs/log_number.h"

namespace stepcast {
namespace {

constexpr char kEscape = 0x1b;
constexpr std::size_t kLongestTag = 64;

// ECMA-48: ESC [ parameters, then a letter; of other sequences the two bytes.
std::string without_colors(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != kEscape) {
      out += line[at];
      continue;
    }
    if (at + 1 >= line.size() || line[++at] != '[') continue;
    while (at + 1 < line.size() && !(line[at + 1] >= '@' && line[at + 1] <= '~')) ++at;
    ++at;
  }
  return out;
}

// Takes a whole number that is not beyond what a rank may be.
bool take_count(std::string_view& text, std::int64_t& value) {
  std::size_t digits = 0;
  value = 0;
  while (digits < text.size() && is_digit(text[digits]) && digits < 9) {
    value = 10 * value + (text[digits++] - '0');
  }
  text.remove_prefix(digits);
  return digits > 0;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
}

// "[default0]:", "[rank0]:", "[0] ", "[1,0]<stdout>:".
bool take_bracket(std::string_view& line, std::int64_t& rank) {
  std::string_view text = line;
  if (!take(text, "[")) return false;
  const bool is_named = take(text, "default") || take(text, "rank");
  if (!take_count(text, rank)) return false;
  if (take(text, ",") && !take_count(text, rank)) return false;
  if (!take(text, "]")) return false;
  const bool has_stream = take(text, "<stdout>") || take(text, "<stderr>");
  if (!take(text, ":") && (is_named || has_stream || !text.starts_with(" "))) return false;
  line = text;
  return true;
}

// "0: " of srun, "run-worker-0: " of a container, "experiment/0 " of NeMo-Run.
bool take_name(std::string_view& line, std::int64_t& rank) {
  std::size_t end = 0;
  while (end < line.size() && end < kLongestTag &&
         (is_word(line[end]) || line[end] == '-' || line[end] == '.' || line[end] == '/')) {
    ++end;
  }
  std::size_t digits = end;
  while (digits > 0 && is_digit(line[digits - 1])) --digits;
  if (digits == end || (digits > 0 && line[digits - 1] != '-' && line[digits - 1] != '/')) {
    return false;
  }
  const bool is_slashed = digits > 0 && line[digits - 1] == '/';
  // A count of something may stand first: "100/7252".
  if (is_slashed && is_digit(line[0])) return false;
  std::string_view count = line.substr(digits, end - digits);
  std::string_view rest = line.substr(end);
  if (!take(rest, is_slashed ? " " : ": ") || !take_count(count, rank)) return false;
  line = rest;
  return true;
}

// "2026-08-10T15:55:20.123Z ", of a cluster's collector.
bool take_time(std::string_view& line) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (line.size() < kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool fits = kShape[i] == '0'   ? is_digit(line[i])
                      : kShape[i] == 'T' ? line[i] == 'T' || line[i] == ' '
                                         : line[i] == kShape[i];
    if (!fits) return false;
  }
  std::string_view rest = line.substr(kShape.size());
  while (!rest.empty() && (is_digit(rest[0]) || rest[0] == '.' || rest[0] == ',' ||
                           rest[0] == 'Z' || rest[0] == '+' || rest[0] == ':')) {
    rest.remove_prefix(1);
  }
  if (!take(rest, " ")) return false;
  line = rest;
  return true;
}

}  // namespace

BareLine bare_line(std::string_view line) {
  const std::string plain = without_colors(line);
  std::string_view rest = plain;
  BareLine out;
  constexpr int kMostTags = 4;
  for (int tag = 0; tag < kMostTags; ++tag) {
    std::string_view text = rest;
    skip_blanks(text);
    std::int64_t rank = 0;
    if (take_bracket(text, rank) || take_name(text, rank)) {
      out.rank = rank;
    } else if (!take_time(text) && !take(text, "> ")) {
      break;
    }
    rest = text;
  }
  out.text = std::string(rest);
  return out;
}

}  // namespace stepcast
