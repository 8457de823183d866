// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/context.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/floats.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

void spread_row(const SpreadRowsArguments& call, const float* from, float* to) {
  if (!call.adds) std::fill_n(to, call.columns, 0.0F);
  for (std::int64_t term = 0; from != nullptr && term < call.terms; ++term) {
    const float* more = from + term * call.term_stride;
    for_packs<float>(call.columns, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
      store<float>(load(to + i, lanes) + load(more + i, lanes), to + i, lanes);
    });
  }
}

void merge_row(float kept, float joining, std::int64_t width, const float* part, float* context) {
  for_packs<float>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    store<float>(kept * load(context + i, lanes) + joining * load(part + i, lanes), context + i,
                 lanes);
  });
}

}  // namespace

void spread_rows(const SpreadRowsArguments& call) {
  const float* from = call.from.array ? floats(call.from.array) : nullptr;
  float* to = floats(call.to.array);
  const auto at = [](const SpreadRows& rows, std::int64_t i, std::int64_t j, std::int64_t k) {
    return i * rows.strides[0] + j * rows.strides[1] + k * rows.strides[2];
  };
  for (std::int64_t i = 0; i < call.counts[0]; ++i) {
    for (std::int64_t j = 0; j < call.counts[1]; ++j) {
      for (std::int64_t k = 0; k < call.counts[2]; ++k) {
        spread_row(call, from == nullptr ? nullptr : from + at(call.from, i, j, k),
                   to + at(call.to, i, j, k));
      }
    }
  }
}

void merge_part(const MergedPartArguments& call) {
  const float *part = floats(call.part.array), *part_sums = floats(call.part_sums);
  float *context = floats(call.context.array), *sums = floats(call.sums);
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      for (std::int64_t i = 0; i < call.rows; ++i) {
        const std::int64_t row = call.first_row + i, token = b * call.all_rows + row;
        const float* from = part + token * call.part.stride + h * call.width;
        float* to = context + token * call.context.stride + h * call.width;
        const float more = part_sums[b * call.heads * call.all_rows + h * call.rows + i];
        float& sum = sums[(b * call.heads + h) * call.all_rows + row];
        if (call.is_first) {
          std::copy_n(from, call.width, to);
          sum = more;
          continue;
        }
        const float larger = std::max(sum, more), smaller = std::min(sum, more);
        const float joined = larger + std::log1p(std::exp(smaller - larger));
        merge_row(std::exp(sum - joined), std::exp(more - joined), call.width, from, to);
        sum = joined;
      }
    }
  }
}

}  // namespace stepcast::cpu
