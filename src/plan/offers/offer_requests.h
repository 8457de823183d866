// SPDX-License-Identifier: Apache-2.0
// Which clusters of which sizes a scenario asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json_tree.h"
#include "core/result.h"
#include "plan/offers/offer.h"

namespace stepcast {

struct OfferQuestion {
  std::vector<SortedJson> clusters;  // names or objects; empty: the scenario's own
  std::string source;                // "--clusters" or "plan.clusters"
  std::vector<std::int64_t> counts;  // of GPUs; empty: as the clusters say
  std::optional<std::int64_t> max_gpus;
};

// Each cluster of `question` in each count, in order, once. A cluster that states a size of its own
// has that one; without counts one that states none has the GPUs of the scenario's cluster, if that
// has a size. Errors: no cluster, counts that are all above max_gpus, sizes that leave `counts`
// without a use.
Result<std::vector<OfferRequest>> offer_requests(const SortedJson& scenario,
                                                 const OfferQuestion& question,
                                                 const std::string& topologies_folder);

}  // namespace stepcast
