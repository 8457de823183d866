// SPDX-License-Identifier: Apache-2.0
// Shows as a table where every rank runs and which part of the model it holds.
#pragma once

#include <string>

namespace stepcast {

struct Scenario;

// Columns rank, node, gpu (in its node), tp, cp, dp, pp, and ep, etp of a model with experts.
std::string rank_map_csv(const Scenario& scenario);
std::string rank_map_json(const Scenario& scenario);

}  // namespace stepcast
