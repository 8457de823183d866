// SPDX-License-Identifier: Apache-2.0
#include "execute/fp8_history.h"

#include <vector>

#include "core/assert.h"
#include "program/fp8_operands.h"
#include "program/program.h"

namespace stepcast {

Fp8History::Fp8History(const Program& program, const Role& role, float loss_scale, Memory& memory)
    : device_(memory.device) {
  constexpr float kAssumed = 16;
  std::vector<float> assumed;
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    for (std::size_t b = 0; b < role.chunks[c].blocks.size(); ++b) {
      const Block& block = program.block(role.chunks[c].blocks[b]);
      for (const BlockPass& pass : block.passes) {
        for (const Operation& operation : pass.operations) {
          if (!makes_fp8(block, operation)) continue;
          const auto* cast = std::get_if<stepcast::Cast>(&operation.work);
          places_[{c, b, operation.writes.front()}] = assumed.size();
          assumed.push_back(cast != nullptr && cast->backward ? kAssumed * loss_scale : kAssumed);
        }
      }
    }
  }
  const auto count = static_cast<std::int64_t>(assumed.size());
  latest_ = memory.make_uncounted(count, DataType::kFp32);
  before_ = memory.make_uncounted(count, DataType::kFp32);
  device_.zero(latest_->array().data, assumed.size() * sizeof(float));
  device_.upload(before_->array().data, assumed.data(), assumed.size() * sizeof(float));
}

Fp8History::Figures Fp8History::of(const Cast& cast) const {
  const auto found = places_.find(cast);
  STEPCAST_ASSERT(found != places_.end(), "a cast of the role has its figures");
  return {latest_->array().as<float>() + found->second,
          before_->array().as<const float>() + found->second};
}

void Fp8History::end_step(const Groups& groups) {
  const auto count = static_cast<std::int64_t>(places_.size());
  for (const AxisGroup group : {AxisGroup::kTensor, AxisGroup::kData}) {
    DeviceCommunicator* const members = groups.find_any(group);
    if (members == nullptr) continue;
    device_.communicate(*members, [&](DeviceStream after) {
      return members->start_all_reduce({latest_->array().data, count, DataType::kFp32},
                                       Reduction::kMaximum, after);
    });
  }
  device_.kernels().copy(latest_->array(), before_->array(), count);
  device_.zero(latest_->array().data, places_.size() * sizeof(float));
}

}  // namespace stepcast
