// SPDX-License-Identifier: Apache-2.0
// Products of a trace without shapes are told apart by their order: a step launches them in the
// order of the forecast, or it is not the forecast's step.
#pragma once

#include <vector>

#include "diagnose/rank_timeline.h"

namespace stepcast {

// Gives product kernels of `measured` the labels that those of `forecast` have, where each rank
// has as many in its step. False, with nothing changed, where one has not.
bool label_products_in_order(const std::vector<Timeline>& forecast, const Labels& labels,
                             std::vector<Timeline>& measured);

}  // namespace stepcast
