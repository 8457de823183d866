// SPDX-License-Identifier: Apache-2.0
// No step of a scenario can be shorter than this, whatever overlaps: sums of what a rank does one
// after the other, from the costs of its kernels and messages alone. Neither waits nor replays are
// asked.
#pragma once

#include <algorithm>
#include <string>

#include "predict/transfer_shapes.h"
#include "priced_step.h"

namespace stepcast::testing {

struct LeastStep {
  Seconds time;
  std::string why;
};

class LeastSteps {
 public:
  LeastSteps(const SimulationInput& input, const Role& role, std::int32_t c)
      : input_(input), role_(role), class_(c), shapes_(input) {}

  void find(LeastStep& out) {
    Seconds all;
    for (const Instruction& what : role_.instructions) all += kernels(what);
    longer(all, "its kernels", out);
    for (const Stream stream : {Stream::kReduce, Stream::kReduceCopies, Stream::kCopyOut}) {
      longer(behind_first_gradient(stream),
             std::string("first gradient, ") + name_of(stream) + ", update", out);
    }
  }

 private:
  Seconds kernels(const Instruction& what) const {
    if (!what.is_run()) return Seconds(0);
    const RunCost& cost = input_.costs.run(class_, what);
    return cost.compute + cost.recompute + cost.optimizer;
  }
  static bool makes_gradients(const Instruction& what) {
    const auto* run = what.as<RunPass>();
    return run != nullptr &&
           (run->slot.pass == Pass::kBackward || run->slot.pass == Pass::kWeightGradient);
  }
  static bool ends_step(const Instruction& what) {
    const auto* block = what.as<RunBlock>();
    return block != nullptr &&
           (block->kind == BlockKind::kGradientNorm || block->kind == BlockKind::kUpdate);
  }
  static bool moves_gradients(const Instruction& what) {
    const auto* call = what.as<CollectiveCall>();
    const auto* copy = what.as<StateCopy>();
    return (call != nullptr && call->purpose == Purpose::kGradients) ||
           (copy != nullptr && copy->purpose == Purpose::kGradients);
  }

  // The first gradient of a step comes behind all that is computed before it, what moves gradients
  // on one stream behind that, one after the other, and the update behind all of these. Copies that
  // leave behind the norm are no part of this.
  Seconds behind_first_gradient(Stream stream) {
    Seconds sum;
    bool made = false, moved = false, ended = false;
    for (const Instruction& what : role_.instructions) {
      if (!made || ends_step(what)) sum += kernels(what);
      made = made || makes_gradients(what);
      ended = ended || ends_step(what);
      if (ended || what.stream != stream || !moves_gradients(what) || is_idle(what, input_.grid)) {
        continue;
      }
      moved = true;
      sum += sim::seconds(sim::Duration{shapes_.shape(class_, what).least_ps()});
    }
    return moved ? sum : Seconds(0);
  }

  static void longer(Seconds time, const std::string& why, LeastStep& out) {
    if (time > out.time) out = {time, why};
  }

  const SimulationInput& input_;
  const Role& role_;
  std::int32_t class_;
  TransferShapes shapes_;
};

inline LeastStep least_step(const Scenario& scenario, const Pricing& pricing) {
  const PricedStep step(scenario, pricing);
  LeastStep out;
  for (std::size_t c = 0; c < step.symmetry.ranks.size(); ++c) {
    const auto rank_class = static_cast<std::int32_t>(c);
    LeastSteps(step.input, step.costs.role(rank_class), rank_class).find(out);
  }
  return out;
}

}  // namespace stepcast::testing
