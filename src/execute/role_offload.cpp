// SPDX-License-Identifier: Apache-2.0
// A role leaves these to the memory of its host: activations between forward and backward, and
// states, which the host updates.
#include <map>
#include <utility>

#include "core/assert.h"
#include "execute/role_runner.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

std::int64_t elements_of(const std::vector<OwnedPiece>& pieces) {
  std::int64_t sum = 0;
  for (const OwnedPiece& piece : pieces) sum += piece.range.size();
  return sum;
}

}  // namespace

// The buffers of the blocks take the place of those that they are copied from: what a block's
// backward finds is where the last copy has put it.
Transfer RoleRunner::copy(const ActivationCopy& copy) {
  Transfer out;
  const bool leaves = copy.direction == CopyDirection::kToHost;
  ByteCount moved = 0;
  for (std::int32_t block = copy.block_begin; block < copy.block_end; ++block) {
    std::map<const Storage*, Tensor> places;  // a buffer may have two names
    for (Tensor& buffer : instances_[{copy.slot.chunk, block, copy.slot.micro_batch}].buffers) {
      if (buffer == nullptr) continue;
      const Tensor from = std::move(buffer);
      Tensor& to = places[from.get()];
      if (to == nullptr) {
        to = leaves ? memory_.make_on_host(*from) : memory_.make_from_host(*from);
        from->leave_ledger();
        moved += from->size();
        out.starts.emplace_back([=, this](DeviceStream after) -> Pending {
          device_->copy(to->array().data, from->array().data, from->size(), copy.direction, after);
          return nullptr;
        });
        if (!leaves) returned_.push_back(from);
      }
      buffer = to;
    }
  }
  STEPCAST_ASSERT(moved == copy.bytes, "a copy moves what the program counts");
  return out;
}

// Adds reduced gradients to their shard. Those that the host sums wait for their copy in a buffer
// of their own.
std::function<void()> RoleRunner::keep_shard(const CollectiveCall& call,
                                             const SummedGradients& summed) {
  Tensor leaving;
  if (state_.gradients_leave()) {
    leaving = memory_.make(MemoryCategory::kBuffers, elements_of(state_.on_host(call.elements)),
                           DataType::kFp32, Stream::kReduce);
    gradients_out_[call.elements.begin] = leaving;
  }
  return [this, &call, summed, leaving] {
    state_.add_to_shard(call.elements, summed.data, leaving ? leaving->array() : Array{});
  };
}

// Parameters that have come from host memory; null where they lie on the device.
Tensor RoleRunner::take_reloaded(ElementRange elements) {
  const auto found = reloaded_.find(elements.begin);
  if (found == reloaded_.end()) return nullptr;
  const Tensor shard = std::move(found->second);
  reloaded_.erase(found);
  shard->leave_ledger();
  return shard;
}

StartTraffic RoleRunner::move(Array from, Array to, std::int64_t elements,
                              CopyDirection direction) {
  const auto bytes = static_cast<std::size_t>(elements * size_of(from.type));
  return [=, this](DeviceStream after) -> Pending {
    device_->copy(to.data, from.data, bytes, direction, after);
    return nullptr;
  };
}

Transfer RoleRunner::copy(const StateCopy& copy) {
  if (copy.purpose == Purpose::kGradients) return copy_gradients(copy);
  return state_.parameters_on_host() ? reload(copy.part.elements) : copy_updated(copy.part);
}

Transfer RoleRunner::copy_gradients(const StateCopy& copy) {
  Transfer out;
  const std::vector<OwnedPiece> pieces = state_.on_host(copy.part);
  if (!state_.gradients_leave()) {
    for (const OwnedPiece& piece : pieces) {
      out.starts.push_back(move(state_.owned_gradients(piece),
                                state_.host()->gradients(piece.offset), piece.range.size(),
                                copy.direction));
    }
    return out;
  }
  const auto found = gradients_out_.find(copy.part.elements.begin);
  STEPCAST_ASSERT(found != gradients_out_.end(), "gradients were reduced before they leave");
  const Tensor from = std::move(found->second);
  gradients_out_.erase(found);
  from->leave_ledger();
  if (pieces.empty()) return out;
  const std::int64_t place = pieces.front().offset, count = elements_of(pieces);
  // Holds the tensors until they have moved.
  if (!copy.adds) {
    out.starts = {move(from->array(), state_.host()->gradients(place), count, copy.direction)};
    out.finish = [from] {};
    return out;
  }
  const Tensor beside = memory_.make_on_host(MemoryCategory::kGradients, count, DataType::kFp32);
  beside->leave_ledger();
  out.starts = {move(from->array(), beside->array(), count, copy.direction)};
  out.finish = [this, from, beside, place, count] {
    state_.host()->add(beside->array(), place, count);
  };
  return out;
}

// A shard of a unit that is gathered next.
Transfer RoleRunner::reload(ElementRange elements) {
  Transfer out;
  const std::vector<OwnedPiece> pieces = state_.on_host(elements);
  const Tensor shard = memory_.make(MemoryCategory::kBuffers, elements_of(pieces), DataType::kFp32,
                                    Stream::kCopyIn);
  reloaded_[elements.begin] = shard;
  Array to = shard->array();
  for (const OwnedPiece& piece : pieces) {
    out.starts.push_back(move(state_.host()->weights(piece.offset), to, piece.range.size(),
                              CopyDirection::kFromHost));
    to = to.from(piece.range.size());
  }
  return out;
}

// Weights that the host has updated.
Transfer RoleRunner::copy_updated(const StatePart& part) {
  Transfer out;
  for (const OwnedPiece& piece : state_.on_host(part)) {
    out.starts.push_back(move(state_.host()->weights(piece.offset), state_.owned_weights(piece),
                              piece.range.size(), CopyDirection::kFromHost));
  }
  return out;
}

Transfer RoleRunner::update(const HostUpdate& update) {
  Transfer out;
  const bool clips = scenario_.training.grad_clip != GradClip::kNone;
  out.starts = {[this, &update, clips, step = step_](DeviceStream) -> Pending {
    float squared = 0;
    if (clips) device_->download(&squared, &totals()->squared_norm, sizeof(squared));
    for (const OwnedPiece& piece : state_.on_host(update.part)) {
      state_.host()->update(piece.offset, piece.range.size(), step, clips ? &squared : nullptr);
    }
    return nullptr;
  }};
  return out;
}

}  // namespace stepcast
