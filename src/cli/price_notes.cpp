// SPDX-License-Identifier: Apache-2.0
#include "cli/price_notes.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <set>

#include "cli/output.h"
#include "core/utc_date.h"
#include "layout/run_settings.h"
#include "layout/scenario.h"

namespace stepcast::cli {
namespace {

std::string today() {
  std::time_t now = std::time(nullptr);
  if (const char* stated = std::getenv("SOURCE_DATE_EPOCH")) {
    now = static_cast<std::time_t>(std::strtoll(stated, nullptr, 10));
  }
  return utc_date(now);
}

}  // namespace

void note_old_prices(const OutputOptions& output, const PriceList& prices,
                     const std::vector<const Scenario*>& scenarios) {
  const std::string day = today();
  std::set<const Price*> told;
  for (const Scenario* scenario : scenarios) {
    if (scenario->run && scenario->run->price_per_gpu_hour) continue;
    const Price* price = find_price(prices, scenario->cluster.spec);
    if (price == nullptr || !is_over_a_year(price->as_of, day)) continue;
    if (!told.insert(price).second) continue;
    note(output, fmt::format("note: the price for {} is of {}, more than a year ago ({}): --price "
                             "or --prices says today's",
                             scenario->cluster.spec.name, price->as_of, price->provider));
  }
}

}  // namespace stepcast::cli
