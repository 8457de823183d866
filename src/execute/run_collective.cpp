// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

// A collective of a block with what it works on: kernels, traffic, kernels.
class BlockCollective {
 public:
  BlockCollective(const OperationCall& call, const Collective& collective)
      : kernels_(&call.kernels()), kind_(collective.kind) {
    const auto [communicator, members, place] =
        call.groups.member(collective.group, stream_of(call.operation.stream));
    group_ = communicator;
    if (collective.purpose != CollectivePurpose::kActivations) {
      combine_loss(call, collective.purpose);
    } else {
      move_activations(call, collective, members, place);
    }
  }

  DeviceCommunicator* group() const { return group_; }  // null: the rank is alone
  void prepare() const { before_.run(*kernels_); }
  Pending start(DeviceStream after) const {
    switch (kind_) {
      case CollectiveKind::kAllReduce:
        return group_->start_all_reduce(moved_, reduction_, after);
      case CollectiveKind::kAllGather:
        return group_->start_all_gather(moved_, after);
      default:
        return group_->start_reduce_scatter(moved_, after);
    }
  }
  void finish() const {
    behind_.run(*kernels_);
    if (local_ == nullptr) return;
    const Array largest{moved_.data, moved_.type};
    kernels_->rescale_sums({.local_largest = local_->array(),
                            .largest = largest,
                            .sum = largest.from(moved_.count),
                            .rows = moved_.count});
  }

 private:
  struct Copy {
    Array from{}, to{};
    std::int64_t count = 0;
    // Set when the rows of `from` are longer than those of `to`: their last columns are copied.
    std::int64_t rows = 0, stride = 0;

    void run(Kernels& kernels) const {
      if (rows > 0) {
        const std::int64_t columns = count / rows;
        const Array last = from.from(stride - columns);
        kernels.variants().copy_columns(
            {.from = {last, stride}, .to = {to, columns}, .rows = rows, .columns = columns});
      } else if (count > 0) {
        kernels.copy(from, to, count);
      }
    }
  };

  void move(Array data, std::int64_t count) { moved_ = {data.data, count, data.type}; }

  void move_activations(const OperationCall& call, const Collective& collective, int members,
                        int place) {
    const auto count = collective.bytes / size_of(collective.type);
    const Slice own = slice_of(count, members, place);
    switch (collective.kind) {
      case CollectiveKind::kAllReduce:
        return move(call.write(0), count);
      case CollectiveKind::kAllGather:
        before_ = own_part(call, own);
        return move(call.write(0), count);
      case CollectiveKind::kReduceScatter:
        behind_ = {call.read(0).from(own.begin), call.write(0), own.size()};
        return move(call.read(0), count);
      default:
        STEPCAST_ASSERT(false, "blocks use no other collectives");
    }
  }

  // This rank gives all that it reads to a gather, or the rotary keys behind the latents.
  static Copy own_part(const OperationCall& call, const Slice& own) {
    Copy out{call.read(0), call.write(0).from(own.begin), own.size()};
    const std::int64_t elements = call.buffer(call.operation.reads[0]).elements;
    if (elements > own.size()) {
      out.rows = call.shape.rows;
      out.stride = elements / call.shape.rows;
    }
    return out;
  }

  // Parts of the loss statistics: largest logit, sum of exponentials, target logit.
  void combine_loss(const OperationCall& call, CollectivePurpose purpose) {
    const std::int64_t tokens = call.shape.tokens;
    const Array largest = call.write(0);
    if (purpose == CollectivePurpose::kLossMaximum) {
      local_ =
          call.memory.make_temporary(tokens, DataType::kFp32, stream_of(call.operation.stream));
      before_ = {largest, local_->array(), tokens};
      reduction_ = Reduction::kMaximum;
      return move(largest, tokens);
    }
    const bool sums = purpose == CollectivePurpose::kLossSum;
    move(largest.from(sums ? tokens : 2 * tokens), tokens);
  }

  Kernels* kernels_;
  DeviceCommunicator* group_ = nullptr;
  CollectiveKind kind_;
  Reduction reduction_ = Reduction::kSum;
  DeviceBuffer moved_;
  Copy before_, behind_;
  Tensor local_;  // largest logits before they are put together
};

}  // namespace

void run_collective(const OperationCall& call, const Collective& collective) {
  const BlockCollective work(call, collective);
  work.prepare();
  if (work.group() != nullptr) {
    call.memory.device.communicate(*work.group(),
                                   [&work](DeviceStream after) { return work.start(after); });
  }
  work.finish();
}

Transfer collective_beside(const OperationCall& call, const Collective& collective) {
  const auto work = std::make_shared<const BlockCollective>(call, collective);
  Transfer out{{}, work->group(), {}, {}};
  out.starts = {[work](DeviceStream after) -> Pending {
    work->prepare();
    return work->group() != nullptr ? work->start(after) : nullptr;
  }};
  out.finish = [work] { work->finish(); };
  return out;
}

}  // namespace stepcast
