// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/limits.h"
#include "core/text/characters.h"

namespace stepcast {
namespace {

// Letters to add, to drop, to replace or to swap with their neighbour until one word is the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// How far a name is from the word: letters that differ, then letters that one has beyond the other.
// A word inside the other, unless it is a small part of it, counts as one letter. People get the
// first letter right: names that begin with another are further.
std::pair<std::size_t, std::size_t> distance_of(const std::string& word, const std::string& name) {
  const auto& [inner, outer] =
      word.size() <= name.size() ? std::pair(word, name) : std::pair(name, word);
  const bool long_enough = inner.size() >= 3 && (inner == word || 2 * inner.size() >= outer.size());
  if (long_enough && outer.find(inner) != outer.npos) {
    return {inner == outer ? 0 : 1, outer.size() - inner.size()};
  }
  const std::size_t first = std::min(word.find_first_not_of('-'), word.size());
  const bool begins_alike = word.compare(0, first + 1, name, 0, first + 1) == 0;
  return {edit_distance(word, name), begins_alike ? 0 : outer.size()};
}

std::string cut(const std::string& part) { return shortened(part, kLongestErrorPart); }

}  // namespace

std::string to_string(const Error& error) {
  std::string out;
  if (!error.file.empty()) out += cut(error.file) + ": ";
  if (!error.path.empty()) out += cut(error.path) + ": ";
  out += cut(error.message);
  if (!error.hint.empty()) out += " (" + cut(error.hint) + ")";
  return out;
}

std::string to_string(const Errors& errors) {
  std::string out;
  for (const Error& error : errors) out += to_string(error) + "\n";
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return "";
  const std::string wanted = lower_case(word);
  // Near means: at most a third of the letters differ, rounded up from four letters on, or one
  // contains the other. The dashes of a flag are no letters.
  const std::size_t dashes = std::min(wanted.find_first_not_of('-'), wanted.size());
  const std::size_t most = std::max<std::size_t>(1, (wanted.size() - dashes + 2) / 3);
  std::pair<std::size_t, std::size_t> best_distance{most + 1, 0};
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const auto distance = distance_of(wanted, lower_case(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best.empty() ? "" : fmt::format("did you mean '{}'?", best);
}

std::string one_of(const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += i + 1 == values.size() ? " or " : ", ";
    out += values[i];
  }
  return out;
}

}  // namespace stepcast
