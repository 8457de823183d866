// SPDX-License-Identifier: Apache-2.0
// First weights of a large model take minutes, in which their maker says that it is alive.
#include <gtest/gtest.h>

#include "threaded_training.h"

namespace stepcast {
namespace {

TEST(FirstWeights, AreMadeWithASignOfLifeBeforeEachParameter) {
  testing::GptCase c = testing::tiny_local();
  int signs = 0;
  ExecutorOptions options;
  options.alive = [&] { ++signs; };
  const Scenario scenario = testing::gpt(c);
  const Program program = lower(scenario);
  testing::train(scenario, program, 0, testing::on_host(), options);
  const auto parameters = placed_parameters(scenario, program, program.roles.front());
  EXPECT_EQ(signs, static_cast<int>(parameters.size()));
  EXPECT_GT(signs, 10);  // of each layer at least its norms and products
}

}  // namespace
}  // namespace stepcast
