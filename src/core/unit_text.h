// SPDX-License-Identifier: Apache-2.0
// "80 GiB", "450 GB/s", "400 Gb/s", "12 us", "312 TFLOP/s": the one parser of quantities in data
// files. GB is 1e9 bytes, GiB is 2^30, Gb/s is bits. A number without a unit is an error.
#pragma once

#include <string>
#include <string_view>

#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

Result<Bytes> parse_bytes(std::string_view text);
Result<BytesPerSecond> parse_rate(std::string_view text);
Result<Seconds> parse_seconds(std::string_view text);
Result<FlopsPerSecond> parse_flops_rate(std::string_view text);

// A count or an amount as people type it: "2T", "1.5B", "500k", "1e12". k, M, B and T are powers
// of 1000; without a letter it is the number. Commas may group digits by threes: "16,400".
Result<double> parse_count(std::string_view text);

// An amount of money is a count with or without its sign: "$500k".
Result<double> parse_dollars(std::string_view text);

// A share of a whole: "0.05" or "5%".
Result<double> parse_fraction(std::string_view text);

}  // namespace stepcast
