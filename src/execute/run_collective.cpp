// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {
namespace {

// Parts of the loss statistics: largest logit, sum of exponentials, target logit.
void combine_loss(const OperationCall& call, std::string_view name) {
  const std::int64_t tokens = call.shape.tokens;
  const std::span<float> all(call.write(0), static_cast<std::size_t>(3 * tokens));
  const auto part = [&](std::int64_t i) {
    return all.subspan(static_cast<std::size_t>(i * tokens), static_cast<std::size_t>(tokens));
  };
  if (name == "loss_maximum") {
    const std::span<float> largest = part(0), sum = part(1);
    std::vector<float>& local = call.instance.local_largest;
    local.assign(largest.begin(), largest.end());
    if (call.tensor != nullptr) call.tensor->all_reduce(largest, Reduction::kMaximum);
    for (std::size_t t = 0; t < largest.size(); ++t) sum[t] *= std::exp(local[t] - largest[t]);
  } else if (call.tensor != nullptr) {
    call.tensor->all_reduce(part(name == "loss_sum" ? 1 : 2));
  }
}

}  // namespace

void run_collective(const OperationCall& call, const Collective& collective) {
  const std::string_view name = call.operation.name;
  if (name.starts_with("loss_")) return combine_loss(call, name);
  const auto count = collective.bytes / static_cast<ByteCount>(sizeof(float));
  const Slice own =
      slice_of(count, static_cast<int>(call.shape.tp), static_cast<int>(call.tp_rank));
  const auto size = static_cast<std::size_t>(count);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      if (call.tensor != nullptr) call.tensor->all_reduce({call.write(0), size});
      return;
    case CollectiveKind::kAllGather:
      std::copy_n(call.read(0), own.size(), call.write(0) + own.begin);
      if (call.tensor != nullptr) call.tensor->all_gather({call.write(0), size});
      return;
    case CollectiveKind::kReduceScatter:
      if (call.tensor != nullptr) call.tensor->reduce_scatter({call.read(0), size});
      std::copy_n(call.read(0) + own.begin, own.size(), call.write(0));
      return;
    default:
      STEPCAST_ASSERT(false, "blocks use no other collectives");
  }
}

}  // namespace stepcast
