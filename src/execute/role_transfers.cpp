// SPDX-License-Identifier: Apache-2.0
// The transfers of a role: between stages, over the data group, at the end of the step.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/assert.h"
#include "execute/initial_weights.h"
#include "execute/role_runner.h"

namespace stepcast {
namespace {

// The pieces of an instruction's elements, of which `data` holds the first, one by one.
template <typename StartPiece>
std::vector<StartTraffic> in_pieces(const Instruction& what, Array data, DeviceCommunicator* group,
                                    StartPiece start) {
  std::vector<StartTraffic> out;
  if (group == nullptr) return out;
  for (const ElementRange& piece : pieces_of(what)) {
    const Array at = data.from(piece.begin - what.elements.begin);
    const DeviceBuffer part{at.data, piece.size(), at.type};
    out.emplace_back([=](DeviceStream after) { return (group->*start)(part, after); });
  }
  return out;
}

StartTraffic all_reduce(DeviceCommunicator* group, Array data, std::int64_t count) {
  return [=](DeviceStream after) {
    return group->start_all_reduce({data.data, count, data.type}, Reduction::kSum, after);
  };
}

}  // namespace

Transfer RoleRunner::collective(const Instruction& what) {
  DeviceCommunicator* group = groups_.find(what.group, what.stream);
  const std::string_view name = what.name;
  if (name == "gradient_norm") return reduce_norm(group);
  if (name == "reduce_replicated_gradients") return reduce_replicated(group);
  if (name == "gather_boundary") return gather_boundary(what, group);
  if (what.collective == CollectiveKind::kAllGather) return gather(what, group);
  if (what.collective == CollectiveKind::kReduceScatter) return reduce(what, group);
  return all_in_place(what, group);
}

// Gradients that every member keeps whole.
Transfer RoleRunner::all_in_place(const Instruction& what, DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  const Array data = state_.gradients(what.elements.begin);
  out.starts = {all_reduce(group, data, what.elements.size())};
  return out;
}

// Parameters after the update: in place, or from the shard into a window of their unit.
Transfer RoleRunner::gather(const Instruction& what, DeviceCommunicator* group) {
  const bool window = state_.shards_parameters();
  const bool opens = window && !state_.parameter_windows().has(what.elements);
  if (opens) state_.parameter_windows().open(what.elements, what.elements);
  const Array data = state_.parameters(what.elements.begin);
  Transfer out{{}, group, in_pieces(what, data, group, &DeviceCommunicator::start_all_gather), {}};
  if (window) {
    const auto fill = [this, &what, data](DeviceStream) -> Pending {
      state_.copy_to_window(what.elements, data);
      return nullptr;
    };
    out.starts.insert(out.starts.begin(), fill);
  }
  return out;
}

Transfer RoleRunner::reduce(const Instruction& what, DeviceCommunicator* group) {
  // The wider copy, where there is one, lives until its reduction has ended.
  const Tensor wide = std::move(wide_[what.elements.begin].data);
  wide_.erase(what.elements.begin);
  const Array data = wide ? wide->array() : state_.gradients(what.elements.begin);
  Transfer out{
      {}, group, in_pieces(what, data, group, &DeviceCommunicator::start_reduce_scatter), {}};
  if (state_.shards_gradients()) {
    out.finish = [this, &what, data, wide] { state_.add_to_shard(what.elements, data); };
  }
  return out;
}

// Norms and row-parallel biases: every tensor-parallel rank has seen a part of the tokens. They are
// packed into one message.
Transfer RoleRunner::reduce_replicated(DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  std::vector<std::pair<Array, std::int64_t>> places;
  std::int64_t count = 0;
  for (const PlacedParameter& placed : parameters_) {
    if (placed.parameter->cut != Cut::kNone) continue;
    // After a reduction that scatters, values outside the owned pieces are meaningless.
    for (const OwnedPiece& piece : state_.shards().within(placed.range)) {
      places.emplace_back(state_.owned_gradients(piece), piece.range.size());
      count += piece.range.size();
    }
  }
  const Tensor packed = memory_.make_uncounted(count, scenario_.training.grad_precision);
  const auto each = [packed, places](const auto& copy) {
    Array at = packed->array();
    for (const auto& [data, size] : places) {
      copy(at, data, size);
      at = at.from(size);
    }
  };
  const auto pack = [this, each](DeviceStream) -> Pending {
    each([&](Array at, Array data, std::int64_t size) { device_->kernels().copy(data, at, size); });
    return nullptr;
  };
  out.starts = {pack, all_reduce(group, packed->array(), count)};
  out.finish = [this, each] {
    each([&](Array at, Array data, std::int64_t size) { device_->kernels().copy(at, data, size); });
  };
  return out;
}

Transfer RoleRunner::reduce_norm(DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  StepTotals* sums = totals();
  out.starts = {[this, sums](DeviceStream) -> Pending {
    device_->kernels().narrow(&sums->local_squared_norm, &sums->squared_norm);
    return nullptr;
  }};
  if (group != nullptr) {
    out.starts.push_back(all_reduce(group, {&sums->squared_norm, DataType::kFp32}, 1));
  }
  return out;
}

// The first rank of the tensor group counts replicated gradients. A table that both ends of the
// pipeline hold is counted on the first stage.
std::vector<ElementRange> RoleRunner::counted_elsewhere() const {
  std::vector<ElementRange> out;
  const bool shared = scenario_.model.tied_embeddings && scenario_.layout.pp > 1;
  for (const PlacedParameter& placed : parameters_) {
    const bool copy =
        shared && role_.stage == scenario_.layout.pp - 1 && placed.layer == kEmbeddingLayer;
    if (copy || (point_.tp > 0 && placed.parameter->cut == Cut::kNone)) {
      out.push_back(placed.range);
    }
  }
  return out;
}

// What crosses between stages where each tensor-parallel rank sends its share.
Slice RoleRunner::boundary_slice() const {
  const std::int64_t count = shape_.rows * shape_.hidden;
  const bool scatters = scenario_.rules.scatter_gather_p2p && !shape_.sequence_parallel;
  return scatters ? slice_of(count, static_cast<int>(shape_.tp), point_.tp) : Slice{0, count};
}

Transfer RoleRunner::message(const Tensor& tensor, const Instruction& what) const {
  const Groups::Link link = groups_.link(what.peer, what.stream);
  Transfer out{{}, link.group, {}, {}};
  const Slice slice = boundary_slice();
  const Array part = tensor->array().from(slice.begin);
  const bool sends = what.kind == InstructionKind::kSend;
  // Holds the tensor until it has moved.
  out.starts = {[tensor, link, part, slice, sends, tag = what.tag](DeviceStream after) -> Pending {
    if (link.group != nullptr) {
      return link.group->start_messages(
          {{link.peer, sends, {part.data, slice.size(), part.type}, tag}}, after);
    }
    return nullptr;
  }};
  return out;
}

Transfer RoleRunner::send(const Instruction& what) {
  const PassKey key{is_forward(what), what.chunk, what.micro_batch};
  const Tensor tensor = std::move(leaving_[key]);
  leaving_.erase(key);
  STEPCAST_ASSERT(tensor != nullptr, "a pass has made what is sent");
  tensor->leave_ledger();
  return message(tensor, what);
}

Transfer RoleRunner::receive(const Instruction& what) {
  const Tensor tensor = memory_.make(MemoryCategory::kActivations, shape_.rows * shape_.hidden,
                                     shape_.type, what.stream);
  arriving_[{is_forward(what), what.chunk, what.micro_batch}] = tensor;
  return message(tensor, what);
}

Transfer RoleRunner::gather_boundary(const Instruction& what, DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  const Tensor tensor = arriving_[{is_forward(what), what.chunk, what.micro_batch}];
  out.starts = {[=, this](DeviceStream after) {
    const Array data = tensor->array();
    return group->start_all_gather({data.data, shape_.rows * shape_.hidden, data.type}, after);
  }};
  return out;
}

}  // namespace stepcast
