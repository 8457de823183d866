// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace stepcast {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Levenshtein distance of two short words.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Error& error) {
  std::string out;
  if (!error.file.empty()) out += error.file + ": ";
  if (!error.path.empty()) out += error.path + ": ";
  out += error.message;
  if (!error.hint.empty()) out += " (" + error.hint + ")";
  return out;
}

std::string to_string(const Errors& errors) {
  std::string out;
  for (const Error& error : errors) out += to_string(error) + "\n";
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = lower(word);
  // Near means: at most a third of the letters differ, or one contains the other. The dashes of
  // a flag are no letters.
  const std::size_t dashes = std::min(wanted.find_first_not_of('-'), wanted.size());
  std::size_t best_distance = (wanted.size() - dashes) / 3 + 2;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::string name = lower(candidate);
    const bool contained = wanted.size() >= 3 && name.find(wanted) != std::string::npos;
    const std::size_t distance = contained ? 1 : edit_distance(wanted, name);
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
