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

using Pending = std::unique_ptr<Request>;

// Several requests on one group, one after the other.
class Sequence : public Request {
 public:
  explicit Sequence(std::vector<std::function<Pending()>> starts) : starts_(std::move(starts)) {}
  bool test() override {
    while (next_ < starts_.size() || current_ != nullptr) {
      if (current_ == nullptr) current_ = starts_[next_++]();
      if (current_ != nullptr && !current_->test()) return false;
      leave();
    }
    return true;
  }
  void wait() override {
    if (current_ != nullptr) current_->wait();
    leave();
    while (next_ < starts_.size()) {
      current_ = starts_[next_++]();
      if (current_ != nullptr) current_->wait();
      leave();
    }
  }
  std::int64_t moves() const override {
    return moves_ + (current_ != nullptr ? current_->moves() : 0);
  }

 private:
  void leave() {
    moves_ = moves();
    current_.reset();
  }

  std::vector<std::function<Pending()>> starts_;
  std::size_t next_ = 0;
  Pending current_;
  std::int64_t moves_ = 0;  // of those that have ended
};

std::size_t size_of_range(ElementRange range) { return static_cast<std::size_t>(range.size()); }

using StartCollective = Pending (Communicator::*)(std::span<float>);

// The pieces of an instruction's elements, of which `data` holds the first, one by one.
Pending in_pieces(const Instruction& what, float* data, Communicator* group,
                  StartCollective start) {
  if (group == nullptr) return nullptr;
  std::vector<std::function<Pending()>> starts;
  for (const ElementRange& piece : pieces_of(what)) {
    const std::span<float> part(data + (piece.begin - what.elements.begin), size_of_range(piece));
    starts.emplace_back([=] { return (group->*start)(part); });
  }
  return std::make_unique<Sequence>(std::move(starts));
}

std::span<float> part_of(const Tensor& tensor, const Slice& slice) {
  return {tensor->floats() + slice.begin, static_cast<std::size_t>(slice.size())};
}

}  // namespace

Transfer RoleRunner::collective(const Instruction& what) {
  Communicator* group = groups_.find(what.group, what.stream);
  const std::string_view name = what.name;
  if (name == "gradient_norm") return reduce_norm(group);
  if (name == "reduce_replicated_gradients") return reduce_replicated(group);
  if (name == "gather_boundary") return gather_boundary(what, group);
  if (what.collective == CollectiveKind::kAllGather) return gather(what, group);
  if (what.collective == CollectiveKind::kReduceScatter) return reduce(what, group);
  return all_in_place(what, group);
}

// Gradients that every member keeps whole.
Transfer RoleRunner::all_in_place(const Instruction& what, Communicator* group) {
  float* data = state_.gradients(what.elements.begin);
  const std::size_t count = size_of_range(what.elements);
  const auto start = [=]() -> Pending {
    return group == nullptr ? nullptr : group->start_all_reduce({data, count}, Reduction::kSum);
  };
  return {{}, start, {}};
}

// Parameters after the update: in place, or from the shard into a window of their unit.
Transfer RoleRunner::gather(const Instruction& what, Communicator* group) {
  const bool window = state_.shards_parameters();
  if (window && !state_.parameter_windows().has(what.elements)) {
    state_.parameter_windows().open(what.elements, what.elements);
  }
  float* data = state_.parameters(what.elements.begin);
  const auto start = [this, &what, window, data, group]() -> Pending {
    if (window) state_.copy_to_window(what.elements, data);
    return in_pieces(what, data, group, &Communicator::start_all_gather);
  };
  return {{}, start, {}};
}

Transfer RoleRunner::reduce(const Instruction& what, Communicator* group) {
  const bool window = state_.shards_gradients();
  float* data = state_.gradients(what.elements.begin);
  const auto start = [&what, data, group] {
    return in_pieces(what, data, group, &Communicator::start_reduce_scatter);
  };
  Transfer transfer{{}, start, {}};
  if (window) {
    transfer.finish = [this, &what, data] { state_.add_to_shard(what.elements, data); };
  }
  return transfer;
}

// Norms and row-parallel biases: every tensor-parallel rank has seen a part of the tokens.
Transfer RoleRunner::reduce_replicated(Communicator* group) {
  auto packed = std::make_shared<std::vector<float>>();
  auto places = std::make_shared<std::vector<std::pair<float*, std::int64_t>>>();
  for (const PlacedParameter& placed : parameters_) {
    if (placed.parameter->cut != Cut::kNone) continue;
    // Outside the owned pieces the values are of no use after a reduction that scatters.
    for (const OwnedPiece& piece : state_.shards().within(placed.range)) {
      places->emplace_back(state_.owned_gradients(piece), piece.range.size());
    }
  }
  const auto start = [packed, places, group]() -> Pending {
    if (group == nullptr) return nullptr;
    for (const auto& [data, count] : *places) packed->insert(packed->end(), data, data + count);
    return group->start_all_reduce(*packed, Reduction::kSum);
  };
  const auto finish = [packed, places] {
    const float* next = packed->data();
    if (packed->empty()) return;
    for (const auto& [data, count] : *places) {
      std::copy_n(next, count, data);
      next += count;
    }
  };
  return {{}, start, finish};
}

Transfer RoleRunner::reduce_norm(Communicator* group) {
  auto value = std::make_shared<float>(static_cast<float>(totals_.local_squared_norm));
  const auto start = [value, group]() -> Pending {
    return group == nullptr ? nullptr : group->start_all_reduce({value.get(), 1}, Reduction::kSum);
  };
  return {{}, start, [this, value] { totals_.squared_norm = *value; }};
}

// Replicated over the tensor group: its first rank counts them. A table that both ends of the
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

int RoleRunner::rank_on_stage(std::int32_t stage) const {
  GridPoint there = point_;
  there.pp = stage;
  return grid_.rank(there).value;
}

Transfer RoleRunner::send(const Instruction& what) {
  const PassKey key{is_forward(what), what.chunk, what.micro_batch};
  const Tensor tensor = std::move(leaving_[key]);
  leaving_.erase(key);
  STEPCAST_ASSERT(tensor != nullptr, "a pass has made what is sent");
  tensor->leave_ledger();
  const auto start = [this, tensor, peer = rank_on_stage(what.peer), tag = what.tag]() -> Pending {
    if (groups_.world() == nullptr) return nullptr;
    return groups_.world()->start_send(part_of(tensor, boundary_slice()), peer, tag);
  };
  return {{}, start, {}};
}

Transfer RoleRunner::receive(const Instruction& what) {
  const Tensor tensor =
      memory_.make(MemoryCategory::kActivations, shape_.rows * shape_.hidden * shape_.element);
  arriving_[{is_forward(what), what.chunk, what.micro_batch}] = tensor;
  const auto start = [this, tensor, peer = rank_on_stage(what.peer), tag = what.tag]() -> Pending {
    if (groups_.world() == nullptr) return nullptr;
    return groups_.world()->start_receive(part_of(tensor, boundary_slice()), peer, tag);
  };
  return {{}, start, {}};
}

Transfer RoleRunner::gather_boundary(const Instruction& what, Communicator* group) {
  const Tensor tensor = arriving_[{is_forward(what), what.chunk, what.micro_batch}];
  const auto start = [tensor, group]() -> Pending {
    if (group == nullptr) return nullptr;
    return group->start_all_gather(
        {tensor->floats(), static_cast<std::size_t>(tensor->size()) / sizeof(float)});
  };
  return {{}, start, {}};
}

}  // namespace stepcast
