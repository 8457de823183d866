// SPDX-License-Identifier: Apache-2.0
#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

template <typename Start>
void communicate(const OperationCall& call, const Start& start) {
  if (call.tensor == nullptr) return;
  call.memory.device.communicate(*call.tensor, start);
}

void all_reduce(const OperationCall& call, Array data, std::int64_t count, Reduction reduction) {
  communicate(call, [&](DeviceStream after) {
    return call.tensor->start_all_reduce({data.data, count, data.type}, reduction, after);
  });
}

// Parts of the loss statistics: largest logit, sum of exponentials, target logit.
void combine_loss(const OperationCall& call, CollectivePurpose purpose) {
  const std::int64_t tokens = call.shape.tokens;
  const Array largest = call.write(0), sum = largest.from(tokens),
              target = largest.from(2 * tokens);
  if (purpose == CollectivePurpose::kLossMaximum) {
    const Tensor local = call.memory.make_uncounted(tokens, DataType::kFp32);
    call.kernels().copy(largest, local->array(), tokens);
    all_reduce(call, largest, tokens, Reduction::kMaximum);
    call.kernels().rescale_sums(local->array(), largest, sum, tokens);
  } else {
    all_reduce(call, purpose == CollectivePurpose::kLossSum ? sum : target, tokens,
               Reduction::kSum);
  }
}

}  // namespace

void run_collective(const OperationCall& call, const Collective& collective) {
  if (collective.purpose != CollectivePurpose::kActivations) {
    return combine_loss(call, collective.purpose);
  }
  const auto count = collective.bytes / size_of(collective.type);
  const Slice own =
      slice_of(count, static_cast<int>(call.shape.tp), static_cast<int>(call.tp_rank));
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return all_reduce(call, call.write(0), count, Reduction::kSum);
    case CollectiveKind::kAllGather:
      call.kernels().copy(call.read(0), call.write(0).from(own.begin), own.size());
      communicate(call, [&](DeviceStream after) {
        return call.tensor->start_all_gather({call.write(0).data, count, collective.type}, after);
      });
      return;
    case CollectiveKind::kReduceScatter:
      communicate(call, [&](DeviceStream after) {
        return call.tensor->start_reduce_scatter({call.read(0).data, count, collective.type},
                                                 after);
      });
      call.kernels().copy(call.read(0).from(own.begin), call.write(0), own.size());
      return;
    default:
      STEPCAST_ASSERT(false, "blocks use no other collectives");
  }
}

}  // namespace stepcast
