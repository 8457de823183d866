// SPDX-License-Identifier: Apache-2.0
// Traffic of a layer of experts: counts of rows, rows, and their weights.
#include <algorithm>

#include "core/assert.h"
#include "execute/operation_call.h"
#include "operation/message.h"

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
    const bool out = collective_.purpose == CollectivePurpose::kDispatch;
    move(*held().rows, out, call_.shape.hidden, call_.read(0), call_.write(0));
    hold();
  }

  // The weights of rows, one number each, go in place. Products read them as sorted as rows are:
  // they are sorted where all that share an expert have them.
  void exchange_weights() const {
    const bool out = call_.operation.phase != Phase::kBackward;
    const ExpertRows& rows = *held().rows;
    const Tensor copy = temporary(std::max(rows.sent(), rows.received()));
    const Array weights = call_.write(0), between = copy->array();
    const bool sorts = shape_.tensor == 1;
    if (out) {
      move(rows, true, 1, weights, between);
      sorts ? sort(between, weights) : call_.kernels().copy(between, weights, rows.received());
    } else {
      sorts ? unsort(weights, between) : call_.kernels().copy(weights, between, rows.received());
      move(rows, false, 1, between, weights);
    }
  }

  // Ranks that share experts show each other what they have received, each at its place among all.
  void gather_rows() const {
    gather(call_.shape.hidden, call_.read(0), call_.write(0));
    hold();
  }
  void reduce_rows() const {
    const std::int64_t width = call_.shape.hidden, all = shape_.rows * width;
    Array from = call_.read(0);
    Tensor wide;
    if (from.type != collective_.type) {
      wide = call_.memory.make_temporary(all, collective_.type, Stream::kCompute);
      call_.kernels().copy(from, wide->array(), all);
      from = wide->array();
    }
    reduce(width, from, call_.write(0));
    hold();
  }
  void gather_weights() const {
    const Tensor all = temporary(shape_.rows);
    const Array weights = call_.write(0);
    gather(1, weights, all->array());
    sort(all->array(), weights);
  }
  void reduce_weights() const {
    const Tensor all = temporary(shape_.rows);
    const Array weights = call_.write(0);
    unsort(weights, all->array());
    reduce(1, all->array(), weights);
  }

 private:
  const HeldRows& held() const { return call_.instance.rows[call_.operation.reads[0].index()]; }
  void hold() const {
    const std::shared_ptr<const ExpertRows> rows = held().rows;
    call_.instance.rows[call_.operation.writes[0].index()] = {rows, false};
  }
  Tensor temporary(std::int64_t numbers) const {
    return call_.memory.make_temporary(numbers, DataType::kFp32, Stream::kCompute);
  }

  void sort(Array from, Array to) const {
    const Tensor order = order_on_device(call_, *held().rows);
    call_.kernels().variants().take_rows(
        {.from = from, .index = order->array(), .to = to, .rows = held().rows->rows(), .width = 1});
  }
  void unsort(Array from, Array to) const {
    const Tensor order = order_on_device(call_, *held().rows);
    call_.kernels().variants().put_rows(
        {.from = from, .index = order->array(), .to = to, .rows = held().rows->rows(), .width = 1});
  }

  void gather(std::int64_t width, Array own, Array all) const {
    const auto [group, members, place] = member(AxisGroup::kExpertTensor);
    const std::int64_t each = shape_.received * width;
    for (int rank = 0; rank < members; ++rank) {
      // A rank that runs alone takes the others for its equals.
      if (rank != place && group != nullptr) continue;
      call_.kernels().copy(own, all.from(rank * each), held().rows->received() * width);
    }
    if (group == nullptr) return;
    const DeviceBuffer moved{all.data, members * each, all.type};
    communicate(*group, [&moved, to = group](DeviceStream after) {
      return to->start_all_gather(moved, after);
    });
  }
  // Places where no row lies are added up too, and nobody reads them.
  void reduce(std::int64_t width, Array all, Array own) const {
    const auto [group, members, place] = member(AxisGroup::kExpertTensor);
    const std::int64_t each = shape_.received * width;
    const DeviceBuffer moved{all.data, members * each, all.type};
    if (group != nullptr) {
      communicate(*group, [&moved, to = group](DeviceStream after) {
        return to->start_reduce_scatter(moved, after);
      });
    }
    call_.kernels().copy(all.from(place * each), own, held().rows->received() * width);
  }

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
  const bool rows = collective.purpose == CollectivePurpose::kDispatch ||
                    collective.purpose == CollectivePurpose::kCombine;
  if (!rows && collective.purpose != CollectivePurpose::kRouting) return false;
  const RowExchange exchange(call, collective);
  switch (collective.kind) {
    case CollectiveKind::kAllToAll:
      rows ? exchange.exchange_rows() : exchange.exchange_weights();
      return true;
    case CollectiveKind::kAllGather:
      if (collective.group != AxisGroup::kExpertTensor) {
        exchange.gather_counts();
      } else {
        rows ? exchange.gather_rows() : exchange.gather_weights();
      }
      return true;
    default:
      rows ? exchange.reduce_rows() : exchange.reduce_weights();
      return true;
  }
}

}  // namespace stepcast
