// SPDX-License-Identifier: Apache-2.0
// How much two kinds of work on streams of one device slow each other down: each is timed alone and
// beside enough of the other to be covered from its begin to its end.
#pragma once

#include <cstdint>
#include <functional>

namespace stepcast {

struct BothTimes {
  double first_s = 0, second_s = 0;  // of all calls
};
// Queues the calls of the second, then those of the first on another stream, and waits for both; 0:
// none. Where several ranks do so, the times are the longest of any rank.
using RunBoth = std::function<BothTimes(std::int64_t first, std::int64_t second)>;

struct SideBySide {
  double second_alone_s = 0;                       // of one call
  double first_slowdown = 1, second_slowdown = 1;  // time beside the other over time alone
};

// Medians of pairs of samples, one alone and one beside, that lie next to each other: clocks drift.
// Calls for so many that each kind takes `sample_s` alone.
SideBySide measure_side_by_side(const RunBoth& run, double sample_s = 5e-3, int samples = 9);

}  // namespace stepcast
