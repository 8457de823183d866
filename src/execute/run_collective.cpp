// SPDX-License-Identifier: Apache-2.0
#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

template <typename Start>
void communicate(const OperationCall& call, DeviceCommunicator* group, const Start& start) {
  if (group == nullptr) return;
  call.memory.device.communicate(*group, start);
}

void all_reduce(const OperationCall& call, DeviceCommunicator* group, Array data,
                std::int64_t count, Reduction reduction) {
  communicate(call, group, [&](DeviceStream after) {
    return group->start_all_reduce({data.data, count, data.type}, reduction, after);
  });
}

// Parts of the loss statistics: largest logit, sum of exponentials, target logit.
void combine_loss(const OperationCall& call, DeviceCommunicator* group, CollectivePurpose purpose) {
  const std::int64_t tokens = call.shape.tokens;
  const Array largest = call.write(0), sum = largest.from(tokens),
              target = largest.from(2 * tokens);
  if (purpose == CollectivePurpose::kLossMaximum) {
    const Tensor local = call.memory.make_uncounted(tokens, DataType::kFp32);
    call.kernels().copy(largest, local->array(), tokens);
    all_reduce(call, group, largest, tokens, Reduction::kMaximum);
    call.kernels().rescale_sums(local->array(), largest, sum, tokens);
  } else {
    all_reduce(call, group, purpose == CollectivePurpose::kLossSum ? sum : target, tokens,
               Reduction::kSum);
  }
}

}  // namespace

void run_collective(const OperationCall& call, const Collective& collective) {
  const auto [group, members, place] = call.groups.member(collective.group);
  if (collective.purpose != CollectivePurpose::kActivations) {
    return combine_loss(call, group, collective.purpose);
  }
  const auto count = collective.bytes / size_of(collective.type);
  const Slice own = slice_of(count, members, place);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduce(call, group, call.write(0), count, Reduction::kSum);
    case CollectiveKind::kAllGather:
      call.kernels().copy(call.read(0), call.write(0).from(own.begin), own.size());
      communicate(call, group, [&, to = group](DeviceStream after) {
        return to->start_all_gather({call.write(0).data, count, collective.type}, after);
      });
      return;
    case CollectiveKind::kReduceScatter:
      communicate(call, group, [&, to = group](DeviceStream after) {
        return to->start_reduce_scatter({call.read(0).data, count, collective.type}, after);
      });
      call.kernels().copy(call.read(0).from(own.begin), call.write(0), own.size());
      return;
    default:
      STEPCAST_ASSERT(false, "blocks use no other collectives");
  }
}

}  // namespace stepcast
