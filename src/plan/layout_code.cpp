// SPDX-License-Identifier: Apache-2.0
#include "plan/layout_code.h"

#include "layout/axis_group.h"
#include "layout/layout.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

std::uint32_t code(std::int64_t value) { return static_cast<std::uint32_t>(value); }

// All orders have the words of the usual one, so where each stands there tells them apart.
std::uint32_t code_of_order(std::string_view order) {
  constexpr std::string_view kUsual = kUsualOrder;
  std::uint32_t out = 0;
  for_each_word(order, [&](std::string_view word) {
    out = out * static_cast<std::uint32_t>(kUsual.size()) +
          static_cast<std::uint32_t>(kUsual.find(word));
  });
  return out;
}

}  // namespace

LayoutCode::LayoutCode(const Scenario& scenario) {
  const Layout& l = scenario.layout;
  LayoutCode& out = *this;
  out[Field::kTp] = code(l.tp);
  out[Field::kCp] = code(l.cp);
  out[Field::kCpMethod] = code(static_cast<std::int64_t>(l.cp_method));
  out[Field::kEp] = code(l.ep);
  out[Field::kEtp] = code(l.etp);
  out[Field::kPp] = code(l.pp);
  out[Field::kDp] = code(l.dp);
  out[Field::kMicroBatch] = code(l.micro_batch);
  out[Field::kSchedule] = code(static_cast<std::int64_t>(l.schedule));
  out[Field::kVirtualStages] = code(l.virtual_stages);
  out[Field::kZero] = code(l.zero);
  out[Field::kShardGroup] = code(l.shard_group);
  out[Field::kSequenceParallel] = l.sequence_parallel;
  out[Field::kRecomputeMode] = code(static_cast<std::int64_t>(l.recompute.mode));
  out[Field::kRecomputeLayers] = code(l.recompute.layers);
  out[Field::kRecomputeEvery] = code(l.recompute.every);
  out[Field::kOrder] = code_of_order(l.order);
  out[Field::kOverlapGradReduce] = l.overlap.grad_reduce;
  out[Field::kOverlapParamGather] = l.overlap.param_gather;
  out[Field::kOverlapTp] = l.overlap.tp;
  out[Field::kOverlapPp] = l.overlap.pp;
  out[Field::kFramework] = code(static_cast<std::int64_t>(scenario.training.framework));
}

std::size_t LayoutCode::hash() const {
  std::uint64_t out = 0x9e3779b97f4a7c15;
  for (std::size_t i = 0; i + 1 < fields_.size(); i += 2) {
    out ^= fields_[i] | static_cast<std::uint64_t>(fields_[i + 1]) << 32;
    out *= 0xff51afd7ed558ccd;
    out ^= out >> 32;
  }
  return out;
}

}  // namespace stepcast
