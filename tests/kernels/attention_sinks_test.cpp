// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_sinks.h"

#include <gtest/gtest.h>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

// exp(z) = 1 over the keys and exp(a) = 3 of the sink: a quarter of the context is left, and the
// sum becomes log 4. The sink's share is 3/4, so its gradient is -3/4 * 2 * 5.
TEST(AttentionSinks, TakeTheirShareOfTheSoftmax) {
  const AttentionShape shape{1, 1, 1, 1, 2};
  std::vector<float> context{8, 4}, sums{0}, sinks{std::log(3.0F)}, flowing{5, 0}, gradient{100};
  add_sinks({.shape = shape,
             .context = {array_of(context), 2},
             .log_sum_exp = array_of(sums),
             .sinks = array_of(sinks)});
  EXPECT_FLOAT_EQ(context[0], 2);
  EXPECT_FLOAT_EQ(context[1], 1);
  EXPECT_FLOAT_EQ(sums[0], std::log(4.0F));
  sink_gradient({.shape = shape,
                 .context = {array_of(context), 2},
                 .context_gradient = {array_of(flowing), 2},
                 .log_sum_exp = array_of(sums),
                 .sinks = array_of(sinks),
                 .gradient = array_of(gradient)});
  EXPECT_FLOAT_EQ(gradient[0], 100 - 7.5F);
}

// Each head has a logit of its own, for all sequences and tokens. In fp32 central differences of
// 1e-2 err by about 1e-4 of the values, from the step and from rounding.
TEST(AttentionSinks, GradientsAreTheSlopesOfEachHead) {
  const AttentionShape shape{2, 3, 3, 5, 4};
  constexpr std::int64_t kTokens = 10, kHeads = 3, kStride = 14;  // rows are wider than the heads
  const auto plain = numbers<float>(kTokens * kStride, 1), sums = numbers<float>(30, 2);
  auto flowing = numbers<float>(kTokens * kStride, 3), sinks = numbers<float>(kHeads, 4);
  struct Joined {
    std::vector<float> context, sums;
  };
  const auto join = [&] {
    Joined out{plain, sums};
    add_sinks({.shape = shape,
               .context = {array_of(out.context), kStride},
               .log_sum_exp = array_of(out.sums),
               .sinks = array_of(sinks)});
    return out;
  };
  const auto loss = [&] {
    const Joined out = join();
    double sum = 0;
    for (std::int64_t token = 0; token < kTokens; ++token) {
      for (std::int64_t i = 0; i < kHeads * shape.head_dim; ++i) {
        const auto at = static_cast<std::size_t>(token * kStride + i);
        sum += static_cast<double>(out.context[at]) * static_cast<double>(flowing[at]);
      }
    }
    return sum;
  };
  Joined at = join();
  auto gradient = zeros<float>(kHeads);
  sink_gradient({.shape = shape,
                 .context = {array_of(at.context), kStride},
                 .context_gradient = {array_of(flowing), kStride},
                 .log_sum_exp = array_of(at.sums),
                 .sinks = array_of(sinks),
                 .gradient = array_of(gradient)});
  std::vector<double> slopes;
  for (float& sink : sinks) {
    const float kept = sink;
    sink = kept + 1e-2F;
    const double above = loss();
    sink = kept - 1e-2F;
    slopes.push_back((above - loss()) / 2e-2);
    sink = kept;
  }
  expect_close(gradient, slopes, 1e-3);
}

}  // namespace
}  // namespace stepcast::cpu
