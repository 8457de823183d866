// SPDX-License-Identifier: Apache-2.0
#include "predict/timed_orders.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/work_limits.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "memory/device_footprint.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/run_costs.h"
#include "predict/traffic.h"
#include "program/walk.h"
#include "schedule/order_replay.h"
#include "schedule/other_orders.h"
#include "schedule/pass_times.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

double& time_of(ChunkTimes& times, Pass pass) {
  if (pass == Pass::kForward) return times.forward;
  return pass == Pass::kWeightGradient ? times.weight_gradient : times.input_gradient;
}

double activations(const MemoryParts& parts) {
  return static_cast<double>(parts[static_cast<std::size_t>(MemoryCategory::kActivations)]);
}

// Times are still to come.
ChunkTimes memory_of(const Program& program, const Chunk& chunk) {
  double all = 0, late = 0;
  ByteCount saved = 0, waiting = 0;
  for (const BlockId id : chunk.blocks) {
    const Block& block = program.block(id);
    all += activations(block.pass(Pass::kForward).memory.after);
    late -= activations(block.pass(Pass::kWeightGradient).memory.after);
    saved += total(block.pass(Pass::kForward).memory.after);
    waiting -= total(block.pass(Pass::kWeightGradient).memory.after);
  }
  const double kept = all > 0 ? std::clamp(late / all, 0.0, 1.0) : ChunkTimes{}.kept;
  return {0, 0, 0, kept, static_cast<double>(saved), static_cast<double>(waiting)};
}

// A pass takes this in passing, beyond the activations that it leaves.
ByteCount most_in_passing(const Program& program, const Role& role) {
  ByteCount out = 0;
  for_each_block(program, role, [&](const Block& block) {
    for (const Pass pass : {Pass::kForward, Pass::kInputGradient, Pass::kWeightGradient}) {
      const MemoryTrace& memory = memory_of(block, pass);
      out = std::max(out, memory.peak - std::max<ByteCount>(total(memory.after), 0));
    }
  });
  return out;
}

// Each stage's device has this room for activations, beside the states of its parameters.
std::vector<double> room_of(const Scenario& scenario, const Program& program) {
  const ByteCount device = scenario.cluster.spec.accelerator.memory - framework_bytes(scenario);
  const ByteCount usable = 2 * device - reserved_bytes(scenario, device);
  std::vector<double> out;
  for (const Role& role : program.roles) {
    const ByteCount left = usable - total(role.persistent) - most_in_passing(program, role);
    out.push_back(static_cast<double>(std::max<ByteCount>(left, 0)));
  }
  return out;
}

// Passes of the first micro-batch; all others are alike.
void add_passes(const Program& program, const RunCosts& costs, std::int32_t rank_class,
                std::vector<std::vector<ChunkTimes>>& out) {
  const Role& role = costs.role(rank_class);
  auto& chunks = out[static_cast<std::size_t>(role.stage)];
  if (!chunks.empty()) return;  // ranks of a stage take the same
  for (const Chunk& chunk : role.chunks) {
    chunks.push_back(memory_of(program, chunk));
  }
  for (const Instruction& instruction : role.instructions) {
    const auto* run = instruction.as<RunPass>();
    if (run == nullptr || run->slot.micro_batch != 0) continue;
    const RunCost& cost = costs.run(rank_class, instruction);
    time_of(chunks[static_cast<std::size_t>(run->slot.chunk)], run->slot.pass) +=
        std::max(cost.gpu, cost.host).value();
  }
}

// The slowest way to a neighbour.
double hop_of(const Traffic& traffic) {
  double out = 0;
  for (const PairTraffic& pair : traffic.pairs) {
    if (pair.copy) continue;
    for (const PairOrbit& orbit : pair.orbits) out = std::max(out, orbit.price.time().value());
  }
  return out;
}

std::optional<Prediction> forecast_with(const Scenario& scenario, const Pricing& pricing,
                                        const Pipeline& pipeline,
                                        const std::vector<StageOrder>& orders) {
  Scenario fixed = scenario;
  fixed.layout.schedule_text = std::make_shared<const std::string>(to_csv(pipeline, orders));
  auto out = predict(fixed, pricing);
  end_if_stopped();
  return out ? std::optional(std::move(*out)) : std::nullopt;
}

// A search knows of each stage's room only roughly, and leaves out orders that may fit. Where a
// schedule's order is shorter than the one that was found, the forecast says whether it fits.
std::vector<StageOrder> shortest_that_fits(const Scenario& scenario, const Pricing& pricing,
                                           const Pipeline& pipeline, const PassTimes& times,
                                           std::vector<StageOrder> found) {
  const auto own = replay_orders(pipeline, times, found);
  if (!own) return found;
  std::vector<std::pair<double, std::vector<StageOrder>>> shorter;
  for (auto& orders : other_orders(pipeline, times)) {
    const auto span = replay_orders(pipeline, times, orders);
    if (!span || step_of(*span, times) >= step_of(*own, times)) continue;
    shorter.emplace_back(step_of(*span, times), std::move(orders));
  }
  std::ranges::stable_sort(shorter, {}, [](const auto& one) { return one.first; });
  std::optional<Prediction> of_found;
  for (auto& [step, orders] : shorter) {
    const auto other = forecast_with(scenario, pricing, pipeline, orders);
    if (!other || !other->fits) continue;
    if (!of_found) of_found = forecast_with(scenario, pricing, pipeline, found);
    if (!of_found || (of_found->fits && of_found->step_time <= other->step_time)) return found;
    return std::move(orders);
  }
  return found;
}

}  // namespace

std::vector<StageOrder> timed_orders(const Scenario& scenario, const Pricing& pricing) {
  const Layout& layout = scenario.layout;
  if (rules_of(layout.schedule).orders == nullptr || layout.schedule_text) {
    return make_schedule(layout, scenario.micro_batches());
  }
  const RankGrid grid(layout);
  const Program program = lower(scenario);
  const Traffic traffic =
      place_traffic(scenario, program, grid, pricing.collectives, kNoStamps, pricing.units);
  const Symmetry symmetry = find_symmetry(scenario, grid, traffic, pricing.collectives, true);
  const RunCosts costs(scenario, program, grid, symmetry, pricing.kernels, pricing.collectives);
  PassTimes times;
  times.chunks.resize(static_cast<std::size_t>(layout.pp));
  for (std::size_t c = 0; c < symmetry.ranks.size(); ++c) {
    add_passes(program, costs, static_cast<std::int32_t>(c), times.chunks);
  }
  times.hop = hop_of(traffic);
  times.room = room_of(scenario, program);
  times.ends_together = scenario.training.grad_clip == GradClip::kGlobal;
  const Pipeline pipeline = pipeline_of(layout, scenario.micro_batches());
  auto orders = make_orders(layout.schedule, pipeline, times);
  if (!rules_of(layout.schedule).takes_the_shortest) return orders;
  return shortest_that_fits(scenario, pricing, pipeline, times, std::move(orders));
}

void keep_timed_orders(const Pricing& pricing, Scenario& scenario) {
  Layout& layout = scenario.layout;
  if (rules_of(layout.schedule).orders == nullptr) return;
  layout.schedule_text = std::make_shared<const std::string>(
      to_csv(pipeline_of(layout, scenario.micro_batches()), timed_orders(scenario, pricing)));
}

Errors keep_timed_orders(const DataFolders& folders, Scenario& scenario) {
  if (rules_of(scenario.layout.schedule).orders == nullptr) return {};
  const auto pricing = make_pricing(scenario, folders);
  if (!pricing) return pricing.error();
  keep_timed_orders(**pricing, scenario);
  return {};
}

}  // namespace stepcast
