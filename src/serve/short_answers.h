// SPDX-License-Identifier: Apache-2.0
// Takes out of a result what an agent needs: figures with their interval, what they rest on, and
// the nearest recorded runs. Lists by rank, the resolved scenario and the rest are left out; the
// program prints them.
#pragma once

#include <cstddef>
#include <string>

#include "core/json_fwd.h"
#include "stepcast/check.h"
#include "stepcast/compare.h"
#include "stepcast/plan.h"

namespace stepcast {

Json short_prediction(const api::Prediction& prediction);
Json short_plan(const api::Plan& plan, std::size_t places);
Json short_comparison(const api::Comparison& comparison);
Json short_check(const api::CheckOutcome& outcome, std::size_t cases);
// A listing of few entries whole, of many their names alone.
Json short_list(const std::string& listing);

}  // namespace stepcast
