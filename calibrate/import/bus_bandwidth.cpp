// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/bus_bandwidth.h"

namespace stepcast {

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  if (kind == CollectiveKind::kAllReduce) return 2 * (n - 1) / n;
  const bool whole = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kSendReceive;
  return whole ? 1 : (n - 1) / n;
}

}  // namespace stepcast
