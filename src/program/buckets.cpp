// SPDX-License-Identifier: Apache-2.0
#include "program/buckets.h"

#include <algorithm>

#include "core/json.h"
#include "core/work_limits.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr ElementRange kNowhere{-1, -1};

// Cuts from the end, in the order in which gradients come.
std::vector<ElementRange> cut(ElementRange whole, ElementRange alone, std::int64_t most) {
  std::vector<ElementRange> out;
  StopPoint stop;
  std::int64_t end = whole.end;
  while (end > whole.begin) {
    stop.pass();
    std::int64_t begin = std::max(whole.begin, end - most);
    for (const std::int64_t edge : {alone.begin, alone.end}) {
      if (edge > begin && edge < end) begin = edge;
    }
    out.push_back({begin, end});
    end = begin;
  }
  return out;
}

void append(std::vector<ElementRange>& to, const std::vector<ElementRange>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Some frameworks cut buckets in the model's first chunk only.
std::int64_t bucket_limit(const RoleBuilder& builder, std::int64_t rule, std::int32_t chunk) {
  const bool one = builder.scenario().rules.buckets_at_entrance_only &&
                   builder.role().chunks[static_cast<std::size_t>(chunk)].model_chunk > 0;
  return one || rule <= 0 ? ObjectReader::kMaxCount : rule;
}

}  // namespace

// Megatron: param_and_grad_buffer.py, shared_embedding.
ElementRange shared_table(const RoleBuilder& builder) {
  const Scenario& scenario = builder.scenario();
  const Layout& layout = scenario.layout;
  if (!scenario.shares_trained_table() || ends_meet(layout) || layout.zero == 0) {
    return kNowhere;
  }
  const auto last = static_cast<std::int32_t>(builder.chunks()) - 1;
  const std::int64_t table = builder.shape().table_elements();
  ElementRange holder = kNowhere;
  if (builder.role().stage == 0) holder = builder.range(0, 0);
  if (builder.role().stage == stage_of_last_chunk(layout)) {
    holder = builder.range(last, builder.blocks(last) - 1);
  }
  return holder.begin < 0 ? kNowhere : ElementRange{holder.begin, holder.begin + table};
}

std::vector<ElementRange> cut_around(ElementRange whole, ElementRange alone) {
  std::vector<ElementRange> out = cut(whole, alone, ObjectReader::kMaxCount);
  std::ranges::reverse(out);
  return out;
}

std::vector<Bucket> cut_buckets(const RoleBuilder& builder, bool by_chunk, std::int64_t rule) {
  const ElementRange alone = shared_table(builder);
  if (!by_chunk) {
    const bool full = builder.scenario().rules.cuts_full_buckets && rule > 0;
    const std::int64_t most = full ? rule : ObjectReader::kMaxCount;
    Bucket all{-1, 0, 0, {}};
    for (const FlatStretch& stretch : builder.role().stretches) {
      append(all.ranges, cut(stretch.range, alone, most));
    }
    return {std::move(all)};
  }
  std::vector<Bucket> out;
  for (auto chunk = static_cast<std::int32_t>(builder.chunks()); chunk-- > 0;) {
    const std::int64_t limit = bucket_limit(builder, rule, chunk);
    std::int32_t end = builder.blocks(chunk);
    for (std::int32_t begin = end; begin-- > 0;) {
      // The bucket is not full yet, or nothing before it is reduced (a frozen embedding).
      if (begin > 0 &&
          (builder.elements(chunk, begin, end) < limit || builder.elements(chunk, 0, begin) == 0)) {
        continue;
      }
      Bucket& bucket = out.emplace_back(Bucket{chunk, begin, end, {}});
      for (const FlatStretch& stretch : builder.role().stretches) {
        const ElementRange whole{builder.range(chunk, begin, stretch.group).begin,
                                 builder.range(chunk, end - 1, stretch.group).end};
        append(bucket.ranges, cut(whole, alone, ObjectReader::kMaxCount));
      }
      end = begin;
    }
  }
  return out;
}

}  // namespace stepcast
