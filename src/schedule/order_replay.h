// SPDX-License-Identifier: Apache-2.0
// How long orders take and how much they hold when every pass begins as soon as its stage is free
// and its input is there. It is the quick estimate by which orders are compared with each other;
// a forecast replays the whole program.
#pragma once

#include <optional>
#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct PassTimes;
struct Pipeline;

struct OrderSpan {
  double longest = 0;        // of any stage, from its first begin to its last end
  double makespan = 0;       // of all stages together
  std::vector<double> held;  // most activations at once, by stage
};

// Returns nothing if the stages wait for each other for ever.
std::optional<OrderSpan> replay_orders(const Pipeline& pipeline, const PassTimes& times,
                                       const std::vector<StageOrder>& orders);

// The time that counts: all stages' where they end together, else the longest stage's.
double step_of(const OrderSpan& span, const PassTimes& times);
// Whether no stage holds more than it has room for.
bool has_room(const OrderSpan& span, const PassTimes& times);

// Time that a pass takes on the stage, and activations that it adds to those held there (or frees).
double time_of(const PassTimes& times, std::int64_t stage, const Slot& slot);
double growth_of(const PassTimes& times, std::int64_t stage, const Slot& slot);

}  // namespace stepcast
