// SPDX-License-Identifier: Apache-2.0
// Numbers for people: three or four significant digits, with their unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/quantity.h"

namespace stepcast {

std::string number_text(double value, int digits = 4);        // "118,000", "12.31", "0.0042"
std::string fixed_text(double value, int decimals);           // "12.3"; never "-0.0"
std::string count_text(double count);                         // "32", "909,000": three digits
std::string time_text(Seconds time);                          // "12.31 s", "843.0 ms", "5.2 us"
std::string duration_text(Seconds time);                      // "42.1 min", "3.1 h", "31.2 days"
std::string dollars_text(double dollars);                     // "$2.95", "$16,400", "$1.23M"
std::string percent_text(double fraction, int decimals = 1);  // "41.7 %"
std::string chance_text(double chance);  // "42 %", "above 99 %": no forecast is certain
std::string signed_percent_text(double fraction, int decimals = 1);   // "+3.2 %"
std::string gib_text(ByteCount bytes);                                // "62.14", in GiB
std::string rate_text(BytesPerSecond rate);                           // "450 GB/s"
std::string counted_text(std::int64_t count, std::string_view noun);  // "1 GPU", "8 GPUs"
std::string parameters_text(std::int64_t count);                      // "70.6 B"

// Exact and short enough to read back to the same double; "" when not finite. For CSV.
std::string exact_text(double value);

// Ranks in ascending order as ranges: "0-7,64-71".
std::string ranks_text(std::vector<RankId> ranks);

constexpr int kBarWidth = 40;  // of the bars of a table, in columns

// A bar of `length` from `start`, both shares of `width` columns, in block characters. Whatever
// is not zero shows as one column at least.
std::string bar_text(double start, double length, int width);

std::string range_text(const std::string& low, const std::string& high);  // "4 s to 5 s"

}  // namespace stepcast
