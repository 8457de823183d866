// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/assert.h"

namespace stepcast {
namespace {

constexpr std::int64_t kBarColumns = 20;

std::string bar(std::int64_t done, std::int64_t total) {
  const std::int64_t filled = total > 0 ? done * kBarColumns / total : kBarColumns;
  std::string out(static_cast<std::size_t>(filled), '=');
  if (filled < kBarColumns) out += '>';
  out.resize(static_cast<std::size_t>(kBarColumns), ' ');
  return out;
}

double trimmed_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  // Cuts a tenth, rounded up, but always leaves something: one of 3, 4 or 5, none of 1 or 2.
  const std::size_t cut = values.size() < 3 ? 0 : (values.size() + 9) / 10;
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto last = values.end() - static_cast<std::ptrdiff_t>(cut);
  return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

}  // namespace

Progress::Progress(std::string title, std::int64_t total)
    : title_(std::move(title)), total_(total) {}

void Progress::skip() {
  STEPCAST_ASSERT(done_ < total_, "no more points than there are");
  ++done_;
}

void Progress::finish(double seconds) {
  skip();
  seconds_.push_back(seconds);
}

std::optional<double> Progress::seconds_left() const {
  if (seconds_.empty()) return std::nullopt;
  return static_cast<double>(total_ - done_) * trimmed_mean(seconds_);
}

std::string Progress::line(const std::string& current, std::size_t columns) const {
  // The count is as wide as the total, so the line does not move.
  const std::size_t digits = std::to_string(total_).size();
  std::string out =
      fmt::format("{}  {:>{}} of {}  [{}]", title_, done_, digits, total_, bar(done_, total_));
  const auto left = seconds_left();
  if (left && done_ < total_) out += "  " + rough_duration(*left) + " left";
  if (!current.empty()) out += "  " + current;
  if (out.size() > columns) {
    constexpr std::size_t kDots = 3;
    out.resize(columns > kDots ? columns - kDots : columns);
    if (columns > kDots) out += "...";
  }
  return out;
}

std::string rough_duration(double seconds) {
  if (seconds < 10) return fmt::format("about {} s", std::max(1L, std::lround(seconds)));
  if (seconds < 95) return fmt::format("about {} s", 5 * std::lround(seconds / 5));
  const long minutes = std::lround(seconds / 60);
  if (minutes < 60) return fmt::format("about {} min", minutes);
  const long tens = (minutes + 5) / 10 * 10;
  if (tens % 60 == 0) return fmt::format("about {} h", tens / 60);
  return fmt::format("about {} h {} min", tens / 60, tens % 60);
}

}  // namespace stepcast
