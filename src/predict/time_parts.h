// SPDX-License-Identifier: Apache-2.0
// The parts of a step's time. Whoever sums, scales, writes or compares them walks kTimeParts: a new
// part is a field and a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/quantity.h"
#include "layout/axis_group.h"

namespace stepcast {

// Splits the step time of one rank into parts, which add up to it.
struct TimeParts {
  Seconds compute, recompute, optimizer;
  Seconds exposed_tp, exposed_cp, exposed_ep, exposed_pp, exposed_dp, exposed_offload;
  Seconds bubble, other;
  Seconds total() const;
};

// A stretch of time is spent on one of these. Ideal time and imbalance are in the waterfall alone.
enum class TimeKind : std::uint8_t {
  kIdeal,
  kCompute,
  kRecompute,
  kOptimizer,
  kImbalance,
  kExposed,
  kBubble,
  kOther
};

struct TimePartRow {
  TimeKind kind;
  const char* key;    // "compute"; of an exposed part that of its traffic: "tp"
  const char* words;  // "exposed tensor parallel"
  Seconds TimeParts::*time;
  std::optional<TrafficKind> traffic = {};  // that the rank waited for
};

// The rows are in the order of the prediction file.
inline constexpr std::array kTimeParts{
    TimePartRow{TimeKind::kCompute, "compute", "compute", &TimeParts::compute},
    TimePartRow{TimeKind::kRecompute, "recompute", "recompute", &TimeParts::recompute},
    TimePartRow{TimeKind::kOptimizer, "optimizer", "optimizer", &TimeParts::optimizer},
    TimePartRow{TimeKind::kExposed, "tp", "exposed tensor parallel", &TimeParts::exposed_tp,
                TrafficKind::kTensor},
    TimePartRow{TimeKind::kExposed, "cp", "exposed context parallel", &TimeParts::exposed_cp,
                TrafficKind::kContext},
    TimePartRow{TimeKind::kExposed, "ep", "exposed expert parallel", &TimeParts::exposed_ep,
                TrafficKind::kExpert},
    TimePartRow{TimeKind::kExposed, "pp", "exposed pipeline transfers", &TimeParts::exposed_pp,
                TrafficKind::kPipeline},
    TimePartRow{TimeKind::kExposed, "dp", "exposed data parallel", &TimeParts::exposed_dp,
                TrafficKind::kData},
    TimePartRow{TimeKind::kExposed, "offload", "exposed offload", &TimeParts::exposed_offload},
    TimePartRow{TimeKind::kBubble, "bubble", "bubble of this rank", &TimeParts::bubble},
    TimePartRow{TimeKind::kOther, "other", "other (host, waiting)", &TimeParts::other}};

inline Seconds TimeParts::total() const {
  Seconds sum;
  for (const TimePartRow& row : kTimeParts) sum += this->*row.time;
  return sum;
}

// Waiting for this traffic is counted here.
constexpr Seconds TimeParts::*exposed_by(TrafficKind kind) {
  for (const TimePartRow& row : kTimeParts) {
    if (row.traffic == kind) return row.time;
  }
  return nullptr;
}

// Whether there are as many rows as fields, each field in one row, and a part for each traffic.
constexpr bool is_whole(decltype(kTimeParts) rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (rows[i].time == rows[j].time) return false;
    }
  }
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
    if (exposed_by(static_cast<TrafficKind>(kind)) == nullptr) return false;
  }
  return sizeof(TimeParts) == rows.size() * sizeof(Seconds);
}
static_assert(is_whole(kTimeParts));

}  // namespace stepcast
