// SPDX-License-Identifier: Apache-2.0
#include "plan/step_table.h"

#include <algorithm>

#include "core/assert.h"
#include "layout/scenario.h"
#include "memory/device_footprint.h"
#include "predict/budget.h"
#include "predict/pricing.h"
#include "predict/traffic.h"
#include "program/block_builder.h"
#include "program/persistent_bytes.h"
#include "program/walk.h"
#include "schedule/schedule.h"

namespace stepcast {
// A group that reaches over stages lies where that of the first stage's rank does.
PlaceId Places::of(AxisGroup group, std::size_t stage) const {
  if (group.crosses_stages()) stage = 0;
  auto known = std::ranges::find(known_, group, &OfGroup::group);
  if (known == known_.end()) {
    known = known_.insert(known_.end(), {group, std::vector<PlaceId>(first.size())});
  }
  PlaceId& place = known->by_stage[stage];
  if (!place.valid()) {
    place = groups_.place(devices_of(grid_.members(group, RankId(first[stage].value))));
  }
  return place;
}

const std::vector<PlaceId>& Places::of(const std::vector<AxisGroup>& groups,
                                       std::size_t stage) const {
  auto known = std::ranges::find(lists_, &groups, &OfList::groups);
  if (known == lists_.end()) {
    known = lists_.insert(lists_.end(), {&groups, std::vector<std::vector<PlaceId>>(first.size())});
  }
  std::vector<PlaceId>& places = known->by_stage[stage];
  if (places.empty()) {
    for (const AxisGroup group : groups) places.push_back(of(group, stage));
  }
  return places;
}

const Places& StepTable::places(const LayoutCode& code) {
  LayoutCode key;
  for (const Field field : {Field::kTp, Field::kCp, Field::kCpMethod, Field::kEp, Field::kEtp,
                            Field::kPp, Field::kDp, Field::kShardGroup, Field::kOrder}) {
    key[field] = code.of(field);
  }
  return places_.get(key, [&] {
    Places out(RankGrid(scenario_.layout), groups_);
    for (std::int32_t stage = 0; stage < scenario_.layout.pp; ++stage) {
      out.first.emplace_back(out.grid().rank({0, 0, 0, stage}).value);
    }
    return out;
  });
}

void StepTable::read_role(const Program& program, const Role& role, const BlockCosts& costs,
                          int units, Skeleton& out) const {
  Stage& stage = out.stages[static_cast<std::size_t>(role.stage)];
  const auto u = static_cast<std::size_t>(units - 1);
  const auto& list = role.instructions;
  const auto is_pass = [](const Instruction& what) { return what.is<RunPass>(); };
  const auto first_pass = std::find_if(list.begin(), list.end(), is_pass);
  const auto last_pass = std::find_if(list.rbegin(), list.rend(), is_pass).base() - 1;
  const auto barrier = std::find_if(last_pass, list.end(), [](const Instruction& what) {
    const auto* call = what.as<CollectiveCall>();
    return call != nullptr && call->group.joins_all_stages();
  });
  // A group of one communicates with nobody, and its host waits for nothing.
  const RankGrid grid(scratch_.layout);
  const auto counted = [](const CollectiveCall& call) {
    return Call{call.group, call.piece(), static_cast<double>(call.pieces)};
  };
  const auto* meeting = barrier != list.end() ? barrier->as<CollectiveCall>() : nullptr;
  out.has_barrier = meeting != nullptr && grid.group_size(meeting->group) > 1;
  if (out.has_barrier) out.barrier = counted(*meeting);
  out.host_meets = out.has_barrier && std::any_of(barrier, list.end(), [](const Instruction& what) {
                     return what.is<HostWait>();
                   });
  stage.persistent = total(role.persistent);
  stage.zero = stage.before_barrier = stage.update = stage.between[u] = {};
  stage.before.clear();
  stage.after.clear();
  stage.first_gather.clear();
  stage.last_reduce.clear();
  for (auto i = list.begin(); i != list.end(); ++i) {
    // Without a barrier everything behind the last pass counts as before it.
    const bool after = i > barrier;
    if (const auto* run = i->as<RunBlock>()) {
      const auto& operations = operations_of(program.block(run->block), Pass::kForward);
      const PassCost cost = cost_of(costs.price(operations));
      (i < first_pass  ? stage.zero
       : i < last_pass ? stage.between[u]
       : after         ? stage.update
                       : stage.before_barrier)
          .append(cost);
    }
    const auto* call = i->as<CollectiveCall>();
    if (call == nullptr || i == barrier) continue;
    if (i->stream == Stream::kGather) {
      const auto index = static_cast<InstructionIndex>(i - list.begin());
      if (first_pass->waits.contains(index)) stage.first_gather = {counted(*call)};
      stage.gathers[u].push_back(counted(*call));
    } else if (i->stream == Stream::kReduce) {
      if (i > last_pass) stage.last_reduce = {counted(*call)};
      stage.reductions[u].push_back(counted(*call));
    } else if (i->stream == Stream::kCompute && i > last_pass) {
      (after ? stage.after : stage.before).push_back(counted(*call));
    }
  }
}

// Without the keys that decide nothing of a step beside its passes.
void StepTable::put_in_scratch() {
  scratch_.layout = scenario_.layout;
  scratch_.training = scenario_.training;
  scratch_.rules = scenario_.rules;
  scratch_.layout.micro_batch = 1;
  scratch_.layout.recompute = {};
  scratch_.layout.micro_batch_group = 0;  // of the order of passes alone
}

const std::vector<ByteCount>& StepTable::persistent(const LayoutCode& code) {
  LayoutCode key = code.without({Field::kMicroBatch, Field::kRecomputeMode, Field::kRecomputeLayers,
                                 Field::kRecomputeEvery, Field::kOrder, Field::kOverlapGradReduce,
                                 Field::kOverlapParamGather, Field::kOverlapTp, Field::kOverlapPp});
  if (scenario_.layout.virtual_stages == 1) key[Field::kSchedule] = 0;
  return persistent_.get(key, [&] {
    put_in_scratch();
    return persistent_bytes(scratch_);
  });
}

StepTable::Skeleton StepTable::make_skeleton(const Pricing& pricing) {
  put_in_scratch();
  Skeleton out;
  out.unit = rules_of(scratch_.layout.schedule).whole_groups ? scratch_.layout.pp : 1;
  out.stages.resize(static_cast<std::size_t>(scratch_.layout.pp));
  const auto take_units = [&](int units) {
    scratch_.training.global_batch = scratch_.layout.dp * out.unit * units;
  };
  // A step that takes too much memory to be lowered is refused when the search comes to replay it.
  // Until then nothing is counted of it but its passes, which take no longer than all of it.
  take_units(2);
  if (!afford_program(scratch_)) return out;
  const BlockCosts costs(scratch_, pricing.kernels, pricing.collectives);
  for (int units = 1; units <= 2; ++units) {
    take_units(units);
    const Program program = lower(scratch_);
    for (const Role& role : program.roles) read_role(program, role, costs, units, out);
  }
  return out;
}

double StepTable::time(const std::vector<Call>& calls, const Places& places, std::size_t stage) {
  double sum = 0;
  for (const Call& call : calls) {
    if (call.message.bytes == 0) continue;
    sum += call.times * groups_.time(places.of(call.group, stage), call.message).value();
  }
  return sum;
}

StepEnds StepTable::price(const Skeleton& skeleton, const Places& places, const HostFit& host) {
  StepEnds out;
  out.has_barrier = skeleton.has_barrier;
  out.host_meets = skeleton.host_meets;
  out.unit = skeleton.unit;
  if (out.has_barrier) out.barrier = time({skeleton.barrier}, places, 0);
  for (std::size_t s = 0; s < skeleton.stages.size(); ++s) {
    const Stage& stage = skeleton.stages[s];
    StageEnds& ends = out.stages.emplace_back();
    ends.persistent = stage.persistent;
    ends.begin.host = ends.begin.floor = host.step_s;
    ends.begin.append(stage.zero);
    ends.begin_gather = time(stage.first_gather, places, s);
    ends.reduce = time(stage.last_reduce, places, s) + time(stage.before, places, s) +
                  stage.before_barrier.gpu;
    ends.norm_host = stage.before_barrier.host;
    ends.update = stage.update;
    const double gathered = time(stage.after, places, s);
    ends.update.gpu += gathered;
    ends.update.floor += gathered;
    ends.gather_first = time(stage.gathers[0], places, s);
    ends.gather_more = time(stage.gathers[1], places, s) - ends.gather_first;
    ends.scatter_first = time(stage.reductions[0], places, s);
    ends.scatter_more = time(stage.reductions[1], places, s) - ends.scatter_first;
    ends.extra_first = stage.between[0].gpu;
    ends.extra_more = stage.between[1].gpu - stage.between[0].gpu;
  }
  return out;
}

const StepEnds& StepTable::ends(const LayoutCode& code, const Places& places,
                                const Pricing& pricing) {
  const LayoutCode key =
      code.without({Field::kMicroBatch, Field::kRecomputeMode, Field::kRecomputeLayers,
                    Field::kRecomputeEvery, Field::kOverlapTp, Field::kOverlapPp});
  return ends_.get(key, [&] {
    const Skeleton& skeleton =
        skeletons_.get(key.without({Field::kOrder}), [&] { return make_skeleton(pricing); });
    StepEnds out =
        price(skeleton, places, pricing.kernels.profile().host[scenario_.training.framework]);
    out.framework = framework_bytes(scenario_);
    return out;
  });
}

}  // namespace stepcast
