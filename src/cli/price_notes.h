// SPDX-License-Identifier: Apache-2.0
// Says of prices that they are old: they move by the month.
#pragma once

#include <vector>

#include "economics/prices.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::cli {

struct OutputOptions;

// A note for each listed price of these scenarios' clusters that is more than a year old today, or
// on the day of SOURCE_DATE_EPOCH where that is set.
void note_old_prices(const OutputOptions& output, const PriceList& prices,
                     const std::vector<const Scenario*>& scenarios);

}  // namespace stepcast::cli
