// SPDX-License-Identifier: Apache-2.0
// Orders of stages with input gradients and weight gradients apart, written for tests.
#pragma once

#include "layout/pipeline.h"
#include "layout/scenario.h"

namespace stepcast::testing {

// 1F1B in which a stage's weight gradients follow `behind` input gradients later, as ZB-H1 (Qi et
// al. 2024, arXiv 2401.10241, figure 3) moves them into the bubble: `behind` is the stage's number.
inline std::vector<StageOrder> split_orders(const Scenario& scenario) {
  std::vector<StageOrder> out;
  for (const StageOrder& whole : make_schedule(scenario.layout, scenario.micro_batches())) {
    const std::size_t behind = out.size();
    StageOrder order;
    std::vector<Slot> waiting;
    const auto release = [&](std::size_t most) {
      for (; waiting.size() > most; waiting.erase(waiting.begin()))
        order.push_back(waiting.front());
    };
    for (Slot slot : whole) {
      if (slot.pass == Pass::kForward) {
        order.push_back(slot);
        continue;
      }
      slot.pass = Pass::kInputGradient;
      order.push_back(slot);
      slot.pass = Pass::kWeightGradient;
      waiting.push_back(slot);
      release(behind);
    }
    release(0);
    out.push_back(std::move(order));
  }
  return out;
}

}  // namespace stepcast::testing
