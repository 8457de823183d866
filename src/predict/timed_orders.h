// SPDX-License-Identifier: Apache-2.0
// The orders of schedules that fit passes together by how long they take.
#pragma once

#include <vector>

#include "core/error.h"
#include "schedule/pass.h"

namespace stepcast {

struct DataFolders;
struct Pricing;
struct Scenario;

// One order per stage. Passes are priced once, as the schedule runs them when all of them take the
// same; other schedules need no prices.
std::vector<StageOrder> timed_orders(const Scenario& scenario, const Pricing& pricing);

// Keeps them in the layout, so that whoever lowers the scenario later, without prices, runs what
// was forecast. Nothing changes where the schedule asks for no times.
void keep_timed_orders(const Pricing& pricing, Scenario& scenario);
// Makes prices where the schedule asks for times. Errors: those of make_pricing().
Errors keep_timed_orders(const DataFolders& folders, Scenario& scenario);

}  // namespace stepcast
