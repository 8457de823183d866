// SPDX-License-Identifier: Apache-2.0
#include "predict/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/work_limits.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "program/block_builder.h"
#include "program/program.h"

namespace stepcast {
namespace {

// Bytes, measured as the memory of programs of millions of each.
constexpr double kPerInstruction = 350;
constexpr double kPerTask = 200;
constexpr double kPerRank = 6000;   // its place in groups and on links, where none are alike
constexpr double kPerKernel = 400;  // of a trace, with its text

// Forecasts have held up to so much more than was foreseen of them, with what the program is.
constexpr double kSafety = 1.2;

Result<void> afford(const Scenario& scenario, double foreseen, const std::string& what) {
  const double bytes = kSafety * foreseen;
  const auto most = static_cast<double>(memory_limit());
  if (bytes <= most) return {};
  std::string hint = fmt::format("--memory-limit {:.0f}GB, or ", std::ceil(1.1e-9 * bytes));
  hint += scenario.micro_batches() > 1024
              ? fmt::format("fewer micro-batches than {}", scenario.micro_batches())
              : "a smaller scenario";
  return failure(
      {ErrorCode::kTooMuch,
       fmt::format("a forecast of {} needs some {:.2g} GB of memory, and may take {:.2g}", what,
                   1e-9 * bytes, 1e-9 * most),
       "", "", std::move(hint)});
}

}  // namespace

double foreseen_instructions(const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  const auto stages = static_cast<double>(layout.pp);
  const auto micro_batches = static_cast<double>(scenario.micro_batches());
  const double blocks = static_cast<double>(scenario.model.layers) / stages + 3;  // of a stage
  const double passes = splits_backward(layout) ? 3 : 2;
  // Each forward and each input gradient is received, waited for, gathered and sent.
  const double moves = layout.pp > 1 ? 8 : 0;
  double of_micro_batch = static_cast<double>(layout.virtual_stages) * (passes + moves);
  // Each unit is gathered for each pass, runs by itself, and is reduced.
  if (gradient_mode(scenario) == GradientMode::kUnit) of_micro_batch += 8 * blocks;
  if (layout.offload.activations > 0) of_micro_batch += 4 * blocks;
  double at_end = 8 * blocks;
  // A bucket runs its blocks and is reduced and gathered.
  const FrameworkRules& rules = scenario.rules;
  const auto chunks = static_cast<double>(layout.virtual_stages);
  const double elements = static_cast<double>(count_parameters(scenario.model).total()) /
                          (stages * static_cast<double>(layout.tp));
  const double full =
      rules.bucket_elements > 0 ? elements / static_cast<double>(rules.bucket_elements) : 0;
  const bool reduces = size_of(AxisGroup::kData, layout) > 1;
  const bool in_backward = reduces && (layout.overlap.grad_reduce || layout.zero == 2);
  const bool gathers_ahead = reduces && layout.overlap.param_gather && layout.zero >= 1;
  if (in_backward || gathers_ahead) {
    at_end += 3 * (blocks + chunks);
    if (layout.zero == 2 && !splits_backward(layout)) {
      const bool fills = layout.overlap.grad_reduce || rules.cuts_full_buckets;
      of_micro_batch += 3 * (chunks + (fills ? std::min(blocks, full) : 0));
    }
  } else if (rules.cuts_full_buckets) {
    at_end += 2 * full;
  }
  return stages * (micro_batches * of_micro_batch + at_end);
}

Result<ByteCount> afford_program(const Scenario& scenario) {
  constexpr double kLeastSteps = 2;
  const double instructions = foreseen_instructions(scenario);
  const auto affordable =
      afford(scenario, instructions * (kPerInstruction + kLeastSteps * kPerTask / 2),
             fmt::format("some {:.2g} instructions", instructions));
  if (!affordable) return failure(affordable.error());
  // A step begins beside the end of the one before.
  return static_cast<ByteCount>(instructions * (kPerInstruction + (kLeastSteps + 1) * kPerTask));
}

namespace {

double tasks_of(const SimulationInput& input, std::int32_t steps) {
  double tasks = 0;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(input.symmetry.ranks.size()); ++c) {
    tasks += static_cast<double>(input.costs.role(c).instructions.size());
    if (!input.expand) continue;
    const auto& list = input.costs.role(c).instructions;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(list.size()); ++i) {
      if (!list[static_cast<std::size_t>(i)].is_run()) continue;
      tasks += 2 * static_cast<double>(input.tasks_of_pass(c, i).tasks.size());  // and its issue
    }
  }
  return tasks * (steps + 1);  // a step begins beside the end of the one before
}

}  // namespace

Result<void> afford_replay(const SimulationInput& input, std::int32_t steps) {
  return afford_replays({{&input, steps}});
}

Result<void> afford_replays(const std::vector<StepsToReplay>& all) {
  double held = 0, tasks = 0;
  std::size_t classes = 0;
  for (const auto& [input, steps] : all) {
    double lists = 0;
    for (const Role& role : input->program.roles) {
      lists += static_cast<double>(role.instructions.size());
    }
    const double own = tasks_of(*input, steps), ranks = static_cast<double>(input->grid.size());
    held += lists * kPerInstruction + own * kPerTask + ranks * kPerRank;
    tasks += own;
    classes += input->symmetry.ranks.size();
  }
  return afford(all.front().input->scenario, held,
                fmt::format("{:.2g} tasks of {} ranks that differ", tasks, classes));
}

Result<void> afford_kernels(const SimulationInput& input) {
  double kernels = 0;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(input.symmetry.ranks.size()); ++c) {
    for (const Instruction& what : input.costs.role(c).instructions) {
      ++kernels;
      if (!what.is_run()) continue;
      for (const RunCosts::PricedBlock* block : input.costs.blocks(c, what)) {
        kernels += static_cast<double>(block->operations.size());
      }
    }
  }
  return afford(input.scenario, kernels * kPerKernel,
                fmt::format("{:.2g} kernels, each in a trace,", kernels));
}

}  // namespace stepcast
