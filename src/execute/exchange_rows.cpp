// SPDX-License-Identifier: Apache-2.0
// Traffic of a layer of experts: counts of rows, rows, and their weights.
#include <algorithm>

#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

constexpr std::int64_t kTag = 1;

class RowExchange {
 public:
  RowExchange(const OperationCall& call, const Collective& collective)
      : call_(call), collective_(collective), shape_(call.scenario, call.shape) {}

  // Every rank's counts of rows, int64. Groups of hosts move fp32, two of which are as long.
  void gather_counts() const {
    const std::vector<std::int64_t> own = count_chosen(call_, shape_, call_.read(0));
    const auto [group, members, place] = member(AxisGroup::kTensorExpert);
    const Array all = call_.write(0);
    for (int rank = 0; rank < members; ++rank) {
      // A rank that runs alone takes the others for its equals.
      if (rank != place && group != nullptr) continue;
      call_.memory.device.upload(all.from(rank * shape_.experts).data, own.data(),
                                 own.size() * sizeof(std::int64_t));
    }
    if (group == nullptr) return;
    const DeviceBuffer moved{all.data, 2 * members * shape_.experts, DataType::kFp32};
    communicate(*group, [&moved, to = group](DeviceStream after) {
      return to->start_all_gather(moved, after);
    });
  }

  // Rows from those that have the tokens to those that have the experts, or back.
  void exchange_rows() const {
    const HeldRows& held = call_.instance.rows[call_.operation.reads[0].index()];
    const bool out = collective_.purpose == CollectivePurpose::kDispatch;
    move(*held.rows, out, call_.shape.hidden, call_.read(0), call_.write(0));
    call_.instance.rows[call_.operation.writes[0].index()] = {held.rows, false};
  }

  // The weights of rows, one number each, go in place. Products read them as sorted as rows are.
  void exchange_weights() const {
    const bool out = call_.operation.phase != Phase::kBackward;
    const HeldRows& held = call_.instance.rows[call_.operation.reads[0].index()];
    const ExpertRows& rows = *held.rows;
    const Tensor copy = call_.memory.make_temporary(std::max(rows.sent(), rows.received()),
                                                    DataType::kFp32, Stream::kCompute);
    const Tensor order = order_on_device(call_, rows);
    VariantKernels& kernels = call_.kernels().variants();
    const Array weights = call_.write(0), between = copy->array();
    if (out) {
      move(rows, true, 1, weights, between);
      kernels.take_rows({.from = between,
                         .index = order->array(),
                         .to = weights,
                         .rows = rows.rows(),
                         .width = 1});
    } else {
      kernels.put_rows({.from = weights,
                        .index = order->array(),
                        .to = between,
                        .rows = rows.rows(),
                        .width = 1});
      move(rows, false, 1, between, weights);
    }
  }

 private:
  Groups::Member member(AxisGroup group) const {
    return call_.groups.member(group, stream_of(call_.operation.stream));
  }
  void communicate(DeviceCommunicator& group, const StartTraffic& start) const {
    call_.memory.device.communicate(group, start);
  }

  void move(const ExpertRows& rows, bool out, std::int64_t width, Array from, Array to) const {
    const auto [group, members, place] = member(AxisGroup::kExpert);
    const std::vector<Slice>& leaving = out ? rows.sent_to() : rows.received_from();
    const std::vector<Slice>& coming = out ? rows.received_from() : rows.sent_to();
    const auto part = [&](Array array, Slice slice) {
      return DeviceBuffer{array.from(slice.begin * width).data, slice.size() * width, array.type};
    };
    if (group != nullptr && rows.is_even()) {
      const Slice all_leaving{0, leaving.back().end}, all_coming{0, coming.back().end};
      communicate(*group, [&, to_all = group](DeviceStream after) {
        return to_all->start_all_to_all(part(from, all_leaving), part(to, all_coming), after);
      });
      return;
    }
    std::vector<DeviceCommunicator::Message> messages;
    for (int peer = 0; peer < members; ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      if (peer == place || group == nullptr) {  // a rank that runs alone sends to itself
        const std::int64_t count = std::min(leaving[at].size(), coming[at].size()) * width;
        call_.kernels().copy(from.from(leaving[at].begin * width),
                             to.from(coming[at].begin * width), count);
        continue;
      }
      if (leaving[at].size() > 0) messages.push_back({peer, true, part(from, leaving[at]), kTag});
      if (coming[at].size() > 0) messages.push_back({peer, false, part(to, coming[at]), kTag});
    }
    if (messages.empty()) return;
    communicate(*group, [&, to_all = group](DeviceStream after) {
      return to_all->start_messages(messages, after);
    });
  }

  const OperationCall& call_;
  const Collective& collective_;
  ExpertShape shape_;
};

}  // namespace

bool run_on_experts(const OperationCall& call, const Collective& collective) {
  const bool counts = collective.kind == CollectiveKind::kAllGather &&
                      collective.purpose == CollectivePurpose::kRouting;
  const bool exchanges = collective.kind == CollectiveKind::kAllToAll &&
                         collective.purpose != CollectivePurpose::kActivations;
  if (!counts && !exchanges) return false;
  const RowExchange exchange(call, collective);
  if (counts) {
    exchange.gather_counts();
  } else if (collective.purpose == CollectivePurpose::kRouting) {
    exchange.exchange_weights();
  } else {
    exchange.exchange_rows();
  }
  return true;
}

}  // namespace stepcast
