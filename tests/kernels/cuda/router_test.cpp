// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/router.h"

#include "core/each.h"
#include "kernels/cpu/experts.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

using Map = std::vector<std::int8_t>;
using Indices = std::vector<std::int64_t>;

// Tokens of some tiles and a part of one, fewer and more experts than a warp has lanes.
const std::vector<RouterShape> kShapes = {{5, 4, 2}, {200, 8, 2}, {130, 40, 6}, {67, 300, 8}};

class Router : public OnDevice {
 protected:
  struct Routed {
    std::vector<float> probabilities;
    Map chosen;
  };
  static Routed on_device(const RouterShape& shape, const std::vector<float>& logits,
                          const Indices& choice) {
    const std::int64_t count = shape.tokens * shape.experts;
    const DeviceArray<float> in(logits), probabilities(count);
    const DeviceArray<std::int8_t> chosen(Map(static_cast<std::size_t>(count), 7));
    if (choice.empty()) {
      route(shape, in.data(), nullptr, probabilities.data(), chosen.data(), nullptr);
    } else {
      const DeviceArray<std::int64_t> given(choice);
      route(shape, in.data(), given.data(), probabilities.data(), chosen.data(), nullptr);
    }
    return {probabilities.on_host(), chosen.on_host()};
  }
  static Routed on_cpu(const RouterShape& shape, const std::vector<float>& logits,
                       const Indices& choice) {
    Routed out{zeros<float>(shape.tokens * shape.experts),
               Map(static_cast<std::size_t>(shape.tokens * shape.experts))};
    cpu::route<float>(shape, logits.data(), choice.empty() ? nullptr : choice.data(),
                      out.probabilities.data(), out.chosen.data());
    return out;
  }
};

TEST_F(Router, ChoosesAsTheCpu) {
  for (const RouterShape& shape : each_of(kShapes)) {
    auto logits = cpu::numbers<float>(shape.tokens * shape.experts, 1);
    // Equal logits: the lower expert comes first.
    for (std::size_t i = 0; i < logits.size(); i += 3) logits[i] = 0.5F;
    Indices choice;
    for (std::int64_t i = 0; i < shape.tokens * shape.top_k; ++i) {
      choice.push_back((i + i / shape.top_k) % shape.experts);
    }
    for (const Indices& given : {Indices(), choice}) {
      const Routed expected = on_cpu(shape, logits, given), out = on_device(shape, logits, given);
      EXPECT_EQ(out.chosen, expected.chosen);
      expect_close(out.probabilities, expected.probabilities, kSame<float>);
    }
  }
}

TEST_F(Router, ChoosesByItsBiasAsTheCpu) {
  for (const RouterShape& shape : each_of(kShapes)) {
    const std::int64_t count = shape.tokens * shape.experts;
    const auto logits = cpu::numbers<float>(count, 1), bias = cpu::numbers<float>(shape.experts, 2);
    Routed expected{zeros<float>(count), Map(static_cast<std::size_t>(count))};
    cpu::route<float>(shape, logits.data(), nullptr, expected.probabilities.data(),
                      expected.chosen.data(), bias.data());
    const DeviceArray<float> in(logits), added(bias), probabilities(count);
    const DeviceArray<std::int8_t> chosen(expected.chosen.size());
    route(shape, in.data(), nullptr, probabilities.data(), chosen.data(), nullptr, added.data());
    EXPECT_EQ(chosen.on_host(), expected.chosen);
    expect_close(probabilities.on_host(), expected.probabilities, kSame<float>);
  }
}

TEST_F(Router, ChoosesManyExpertsAlsoOfLogitsThatAreNoNumbers) {
  const RouterShape shape{3, 40, 4};
  const Routed out = on_device(shape, std::vector<float>(120, NAN), {});
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const auto begin = out.chosen.begin() + token * shape.experts;
    EXPECT_EQ(std::count(begin, begin + shape.experts, 1), shape.top_k);
  }
}

TEST_F(Router, MakesTheRowsOfTheCpuAndTheirGradients) {
  for (RouterShape shape : each_of(kShapes)) {
    const Routed routed = on_cpu(shape, cpu::numbers<float>(shape.tokens * shape.experts, 2), {});
    // Without a capacity, with one that drops rows, with one that pads.
    const std::int64_t mean = shape.tokens * shape.top_k / shape.experts + 1;
    for (const std::int64_t capacity : {std::int64_t{0}, mean, 3 * mean}) {
      shape.capacity = capacity;
      const std::int64_t rows =
          capacity > 0 ? shape.experts * capacity : shape.tokens * shape.top_k;
      Indices tokens(static_cast<std::size_t>(rows), 99);
      auto weights = zeros<float>(rows), logits = zeros<float>(shape.tokens * shape.experts);
      const auto gradient = cpu::numbers<float>(rows, 3);
      cpu::choose_rows<float>(shape, routed.probabilities.data(), routed.chosen.data(),
                              tokens.data(), weights.data());
      cpu::route_backward<float>(shape, routed.probabilities.data(), routed.chosen.data(),
                                 gradient.data(), logits.data());

      const DeviceArray<float> probabilities(routed.probabilities), of_weights(gradient);
      const DeviceArray<std::int8_t> chosen(routed.chosen);
      const DeviceArray<std::int32_t> workspace(router_workspace(shape));
      const DeviceArray<std::int64_t> token_of_row(Indices(static_cast<std::size_t>(rows), 98));
      const DeviceArray<float> row_weights(rows), of_logits(shape.tokens * shape.experts);
      choose_rows(shape, probabilities.data(), chosen.data(), token_of_row.data(),
                  row_weights.data(), workspace.data(), nullptr);
      EXPECT_EQ(token_of_row.on_host(), tokens);
      EXPECT_EQ(row_weights.on_host(), weights);
      route_backward(shape, probabilities.data(), chosen.data(), of_weights.data(),
                     of_logits.data(), workspace.data(), nullptr);
      expect_close(of_logits.on_host(), logits, kSame<float>);
    }
  }
}

}  // namespace
}  // namespace stepcast::cuda
