// SPDX-License-Identifier: Apache-2.0
// The transfers of a role: between stages, over the data group, at the end of the step.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/assert.h"
#include "execute/initial_weights.h"
#include "execute/role_runner.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

// The pieces of an instruction's elements, of which `data` holds the first, one by one.
template <typename StartPiece>
std::vector<StartTraffic> in_pieces(const CollectiveCall& call, Array data,
                                    DeviceCommunicator* group, StartPiece start) {
  std::vector<StartTraffic> out;
  if (group == nullptr) return out;
  for (const ElementRange& piece : pieces_of(call)) {
    const Array at = data.from(piece.begin - call.elements.begin);
    const DeviceBuffer part{at.data, piece.size(), at.type};
    out.emplace_back([=](DeviceStream after) { return (group->*start)(part, after); });
  }
  return out;
}

// Reduced over the data ranks, as experts are not that other ranks hold.
bool is_dense(const Parameter& parameter) { return parameter.replicas == AxisGroup::kData; }

StartTraffic all_reduce(DeviceCommunicator* group, Array data, std::int64_t count) {
  return [=](DeviceStream after) {
    return group->start_all_reduce({data.data, count, data.type}, Reduction::kSum, after);
  };
}

}  // namespace

Transfer RoleRunner::collective(const Instruction& what) {
  const CollectiveCall& call = *what.as<CollectiveCall>();
  DeviceCommunicator* group = groups_.find(call.group, what.stream);
  switch (call.purpose) {
    case Purpose::kGradients:
      if (call.group.is_outer()) return sum_copies(call, group);
      if (scatters_gradients(call)) return reduce(call, group);
      return total(what.birth) > 0 ? all_in_copy(call, group) : all_in_place(call, group);
    case Purpose::kParameters:
      return gather(call, group);
    case Purpose::kReplicatedGradients:
      return reduce_replicated(group);
    case Purpose::kTiedTable:
      return state_.shards_gradients() ? all_in_shard(call, group) : all_in_place(call, group);
    case Purpose::kGradientNorm:
      return reduce_norm(group);
    case Purpose::kBoundary:
      return gather_boundary(call.slot, group);
  }
  return {};
}

// Gradients that every member keeps whole.
Transfer RoleRunner::all_in_place(const CollectiveCall& call, DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  const Array data = state_.gradients(call.elements.begin);
  out.starts = {all_reduce(group, data, call.elements.size())};
  return out;
}

// Through a flat copy of them, as some frameworks do.
Transfer RoleRunner::all_in_copy(const CollectiveCall& call, DeviceCommunicator* group) {
  const Array data = state_.gradients(call.elements.begin);
  const std::int64_t count = call.elements.size();
  const Tensor flat = memory_.make(MemoryCategory::kBuffers, count, data.type);
  flat->leave_ledger();
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  const auto fill = [=, this](DeviceStream) -> Pending {
    device_->kernels().copy(data, flat->array(), count);
    return nullptr;
  };
  out.starts = {fill, all_reduce(group, flat->array(), count)};
  out.finish = [=, this] { device_->kernels().copy(flat->array(), data, count); };
  return out;
}

// Gradients of which every member keeps the same part.
Transfer RoleRunner::all_in_shard(const CollectiveCall& call, DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  for (const OwnedPiece& piece : state_.shards().within(call.elements)) {
    out.starts.push_back(all_reduce(group, state_.owned_gradients(piece), piece.range.size()));
  }
  return out;
}

// Parameters after the update: in place, or from the shard into a window of their unit.
Transfer RoleRunner::gather(const CollectiveCall& call, DeviceCommunicator* group) {
  const bool window = state_.shards_parameters();
  const bool opens = window && !state_.parameter_windows().has(call.elements);
  if (opens) state_.parameter_windows().open(call.elements, call.elements);
  const Array data = state_.parameters(call.elements.begin);
  Transfer out{{}, group, in_pieces(call, data, group, &DeviceCommunicator::start_all_gather), {}};
  if (window) {
    const Tensor shard = take_reloaded(call.elements);
    const auto fill = [this, &call, data, shard](DeviceStream) -> Pending {
      state_.copy_to_window(call.elements, data, shard ? shard->array() : Array{});
      return nullptr;
    };
    out.starts.insert(out.starts.begin(), fill);
  }
  return out;
}

Transfer RoleRunner::reduce(const CollectiveCall& call, DeviceCommunicator* group) {
  // The wider copy, where there is one, lives until its reduction has ended.
  const Tensor wide = std::move(wide_[call.elements.begin].data);
  wide_.erase(call.elements.begin);
  const Array data = wide ? wide->array() : state_.gradients(call.elements.begin);
  Transfer out{
      {}, group, in_pieces(call, data, group, &DeviceCommunicator::start_reduce_scatter), {}};
  if (has_copies(call)) {
    summed_[call.elements.begin] = {data, wide};  // the other copies' come to it first
  } else if (state_.shards_gradients()) {
    out.finish = keep_shard(call, {data, wide});
  }
  return out;
}

// Among ranks that share one copy of the states, beside other copies.
bool RoleRunner::has_copies(const CollectiveCall& call) const {
  return call.group.is_inner() && grid_.group_size(call.group.whole().outer()) > 1;
}

// Adds what the ranks of other copies have of the same part of a reduction.
Transfer RoleRunner::sum_copies(const CollectiveCall& call, DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  const SummedGradients summed = std::move(summed_[call.elements.begin]);
  summed_.erase(call.elements.begin);
  for (const OwnedPiece& piece : state_.shards().within(call.elements)) {
    const Array own = summed.data.from(piece.range.begin - call.elements.begin);
    if (group != nullptr) out.starts.push_back(all_reduce(group, own, piece.range.size()));
  }
  if (state_.shards_gradients()) {
    out.finish = keep_shard(call, summed);
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
    if (placed.parameter->cut != Cut::kNone || !is_dense(*placed.parameter)) continue;
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

// The first copy of sharded states counts its gradients. The first rank of the tensor group counts
// replicated gradients; experts that are not cut have shards on all of its ranks, or where nothing
// is sharded lie on each of them. A table that both ends of the pipeline hold is counted on the
// first stage, and each chunk of a model that stands on the stages twice on the earlier of its two.
std::vector<ElementRange> RoleRunner::counted_elsewhere() const {
  std::vector<ElementRange> out;
  for (const FlatStretch& stretch : role_.stretches) {
    const AxisGroup copies = stretch.group.outer();
    const bool in_copies = scenario_.layout.zero >= 1 && grid_.group_size(copies) > 1;
    const bool twice = scenario_.layout.zero == 0 && 2 * role_.stage >= scenario_.layout.pp &&
                       joins_mirrored_stages(stretch.group, scenario_.layout);
    if (twice || (in_copies && grid_.place_in(copies, rank_) > 0)) out.push_back(stretch.range);
  }
  const bool shared = scenario_.shares_trained_table() && !ends_meet(scenario_.layout);
  for (const PlacedParameter& placed : parameters_) {
    const bool copy = shared && role_.stage == stage_of_last_chunk(scenario_.layout) &&
                      placed.layer == kEmbeddingLayer;
    const bool whole = placed.parameter->cut == Cut::kNone &&
                       (is_dense(*placed.parameter) || scenario_.layout.zero == 0);
    // Ranks that share experts all hold the biases of their outputs. A load is no gradient.
    const bool of_experts = placed.parameter->cut == Cut::kNone && scenario_.layout.etp > 1 &&
                            !is_dense(*placed.parameter) && grid_.coordinate(Axis::kEtp, rank_) > 0;
    if (copy || of_experts || placed.parameter->balances || (point_.tp > 0 && whole)) {
      out.push_back(placed.range);
    }
  }
  return out;
}

// Part of a boundary's tensor that this rank sends: its share when tensor-parallel ranks split it.
Slice RoleRunner::boundary_slice() const {
  const std::int64_t count = shape_.rows * shape_.hidden;
  const bool scatters = scenario_.rules.scatter_gather_p2p && !shape_.sequence_parallel;
  return scatters ? slice_of(count, static_cast<int>(shape_.tp), point_.tp) : Slice{0, count};
}

Transfer RoleRunner::message(const Tensor& tensor, const StageTransfer& moved, bool sends,
                             Stream stream) const {
  const Groups::Link link = groups_.link(moved.peer, stream);
  Transfer out{{}, link.group, {}, {}};
  const Slice slice = boundary_slice();
  const Array part = tensor->array().from(slice.begin);
  // Holds the tensor until it has moved.
  out.starts = {[tensor, link, part, slice, sends, tag = moved.tag](DeviceStream after) -> Pending {
    if (link.group != nullptr) {
      return link.group->start_messages(
          {{link.peer, sends, {part.data, slice.size(), part.type}, tag}}, after);
    }
    return nullptr;
  }};
  return out;
}

Transfer RoleRunner::send(const Send& send, Stream stream) {
  const PassKey key = key_of(send.slot);
  const Tensor tensor = std::move(leaving_[key]);
  leaving_.erase(key);
  STEPCAST_ASSERT(tensor != nullptr, "a pass has made what is sent");
  tensor->leave_ledger();
  return message(tensor, send, true, stream);
}

Transfer RoleRunner::receive(const Receive& receive, Stream stream) {
  const Tensor tensor =
      memory_.make(MemoryCategory::kActivations, shape_.rows * shape_.hidden, shape_.type, stream);
  arriving_[key_of(receive.slot)] = tensor;
  return message(tensor, receive, false, stream);
}

Transfer RoleRunner::gather_boundary(const Slot& slot, DeviceCommunicator* group) {
  Transfer out{{}, group, {}, {}};
  if (group == nullptr) return out;
  const Tensor tensor = arriving_[key_of(slot)];
  out.starts = {[=, this](DeviceStream after) {
    const Array data = tensor->array();
    return group->start_all_gather({data.data, shape_.rows * shape_.hidden, data.type}, after);
  }};
  return out;
}

}  // namespace stepcast
