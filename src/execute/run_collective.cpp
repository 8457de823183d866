// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/assert.h"
#include "execute/live_arrays.h"
#include "operation/message.h"

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
    switch (collective.purpose) {
      case CollectivePurpose::kActivations:
        move_activations(call, collective, members, place);
        break;
      case CollectivePurpose::kKeys:
        move_heads(call, collective, HeadSide::kKey, members, place);
        break;
      case CollectivePurpose::kValues:
        move_heads(call, collective, HeadSide::kValue, members, place);
        break;
      case CollectivePurpose::kScale:  // the largest element of what ranks hold parts of
        reduction_ = Reduction::kMaximum;
        move(call.write(0), 1);
        break;
      default:
        combine_loss(call, collective.purpose);
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
      case CollectiveKind::kAllToAll:
        return group_->start_all_to_all(moved_, received_, after);
      case CollectiveKind::kSendReceive:
        return group_->start_messages(messages_, after);
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
    // Set when rows of `from` or `to` are parts of longer ones.
    std::int64_t rows = 0, from_stride = 0, to_stride = 0;

    void run(Kernels& kernels) const {
      if (rows > 0) {
        kernels.variants().copy_columns({.from = {from, from_stride},
                                         .to = {to, to_stride},
                                         .rows = rows,
                                         .columns = count / rows});
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
        if (call.operation.reads[0] != call.operation.writes[0]) {
          before_ = {call.read(0), call.write(0), count};
        }
        return move(call.write(0), count);
      case CollectiveKind::kAllGather:
        before_ = own_part(call, own);
        call.tensor(call.operation.writes[0])
            .stand_for_the_same(call.tensor(call.operation.reads[0]));
        return move(call.write(0), count);
      case CollectiveKind::kAllToAll:
        received_ = {call.write(0).data, count, call.write(0).type};
        return move(call.read(0), count);
      case CollectiveKind::kSendReceive:
        return pass_on(call, members, place);
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
      out.from_stride = elements / out.rows;
      out.to_stride = own.size() / out.rows;
      out.from = out.from.from(out.from_stride - out.to_stride);
    }
    return out;
  }

  // Around a ring: forward to the next rank, and backward home. Each tensor that is read arrives,
  // from the rank on the other side, as the one that is written in its place.
  void pass_on(const OperationCall& call, int members, int place) {
    const int step = call.operation.phase == Phase::kBackward ? members - 1 : 1;
    const int to = (place + step) % members, from = (place + members - step) % members;
    const auto message = [&](int peer, bool sends, BufferId id) {
      const Array array = call.data(id);
      messages_.push_back({peer, sends, {array.data, call.buffer(id).elements, array.type}});
    };
    for (const BufferId id : call.operation.reads) message(to, true, id);
    for (const BufferId id : call.operation.writes) message(from, false, id);
  }

  // Keys of all ranks lie before the values. A rank's own ones may be columns of packed rows.
  void move_heads(const OperationCall& call, const Collective& collective, HeadSide side,
                  int members, int place) {
    const Shape& shape = call.shape;
    const std::int64_t count = collective.bytes / size_of(collective.type);
    const Slice own = slice_of(count, members, place);
    const bool gathers = collective.kind == CollectiveKind::kAllGather;
    const BufferId whole = gathers ? call.operation.writes[0] : call.operation.reads[0];
    const BufferId id = gathers ? call.operation.reads[0] : call.operation.writes[0];
    const std::int64_t begin = side == HeadSide::kValue ? call.buffer(whole).elements - count : 0;
    const Array moved = call.data(whole).from(begin);
    move(moved, count);
    const std::int64_t width = own.size() / shape.tokens;
    const HeadSpec spec{shape.tokens, shape.heads * shape.head_dim, width, width, collective.type};
    const HeadArray heads = call.buffer(id).elements == own.size() ? HeadArray{call.data(id), width}
                                                                   : heads_in(call, id, side, spec);
    const Array there = moved.from(own.begin);
    if (gathers) {
      before_ = {heads.array, there, own.size(), shape.tokens, heads.stride, width};
    } else {
      behind_ = {there, heads.array, own.size(), shape.tokens, width, heads.stride};
    }
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
  DeviceBuffer moved_, received_;
  std::vector<DeviceCommunicator::Message> messages_;
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
