// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/context.h"

#include <gtest/gtest.h>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

// Two ranks, one sequence of four rows of two elements each: rank 0 has tokens 0, 1, 6 and 7 of the
// sequence, rank 1 those between. Second halves follow each other against the order of the ranks.
TEST(SpreadRows, PutsHalvesOfARanksTokensIntoTheirPlaces) {
  std::vector<float> message(16), ordered(16, 9);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<float>(i);
  for (const std::int64_t half : {0, 1}) {
    spread_rows({.from = {array_of(message).from(half * 4), {8, 8, 2}},
                 .to = {array_of(ordered).from(half * 12), {half == 0 ? 4 : -4, 16, 2}},
                 .counts = {2, 1, 2},
                 .columns = 2});
  }
  EXPECT_EQ(ordered, (std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7}));
}

TEST(SpreadRows, AddsTermsAndWritesZerosWhereNothingComes) {
  std::vector<float> from{1, 2, 10, 20}, to{100, 100, 100};
  spread_rows({.from = {array_of(from), {}},
               .to = {array_of(to), {}},
               .columns = 2,
               .terms = 2,
               .term_stride = 2,
               .adds = true});
  EXPECT_EQ(to, (std::vector<float>{111, 122, 100}));
  spread_rows({.from = {}, .to = {array_of(to), {0, 0, 2}}, .counts = {1, 1, 2}, .columns = 1});
  EXPECT_EQ(to, (std::vector<float>{0, 122, 0}));
}

// Weights of e^0 and e^1 over keys that were seen apart: 1/(1 + e) and e/(1 + e).
TEST(MergePart, WeighsContextsByTheirSumsOfExponentials) {
  std::vector<float> context{8, 8, 8, 8}, sums{9, 9}, part{1, 2, 3, 4}, part_sums{0, 0};
  const auto merge = [&](std::int64_t first, bool is_first) {
    merge_part({.batch = 1,
                .heads = 1,
                .width = 2,
                .rows = 2 - first,
                .all_rows = 2,
                .first_row = first,
                .part = {array_of(part), 2},
                .part_sums = array_of(part_sums),
                .context = {array_of(context), 2},
                .sums = array_of(sums),
                .is_first = is_first});
  };
  merge(0, true);
  EXPECT_EQ(context, part);
  part = {0, 0, 7, 8};
  part_sums = {1, 0};  // of the one row that comes
  merge(1, false);
  const double e = std::exp(1.0);
  expect_close(context, std::vector<double>{1, 2, (3 + e * 7) / (1 + e), (4 + e * 8) / (1 + e)},
               1e-6);
  expect_close(sums, std::vector<double>{0, std::log(1 + e)}, 1e-6);
}

}  // namespace
}  // namespace stepcast::cpu
