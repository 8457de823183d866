// SPDX-License-Identifier: Apache-2.0
// Layouts are held against one rank; what one rank computes is held against the loss here. Along
// the gradient of a parameter the loss grows by the gradient's length.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "execute/host_device.h"
#include "execute/role_runner.h"
#include "variant_case.h"

namespace stepcast {
namespace {

using testing::variant;
using testing::VariantCase;

class OneStep {
 public:
  explicit OneStep(const Scenario& scenario)
      : program_(lower(scenario)),
        grid_(scenario.layout),
        runner_(scenario, program_, grid_, RankId(0), nullptr, std::make_unique<HostDevice>(), {}),
        tokens_(static_cast<double>(scenario.training.global_batch) *
                static_cast<double>(scenario.training.sequence_length)) {
    fill_zeros();
  }

  double loss() { return runner_.step().loss_sum / tokens_; }
  const std::vector<PlacedParameter>& parameters() const { return runner_.parameters(); }
  std::vector<float> gradient(const ElementRange& range) {
    const float* data = runner_.state().gradients(range.begin).as<float>();
    return {data, data + range.size()};
  }
  void move(const ElementRange& range, const std::vector<float>& direction, double by) {
    float* data = runner_.state().parameters(range.begin).as<float>();
    for (std::size_t i = 0; i < direction.size(); ++i) {
      data[i] += static_cast<float>(by) * direction[i];
    }
  }

 private:
  // Parameters that begin as zeros would hide what they multiply.
  void fill_zeros() {
    for (const PlacedParameter& placed : parameters()) {
      if (placed.parameter->initial != Initial::kZeros) continue;
      std::vector<float> values(static_cast<std::size_t>(placed.range.size()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = 0.1F * (static_cast<float>(i % 5) - 1.5F);
      }
      move(placed.range, values, 1);
    }
  }

  Program program_;
  RankGrid grid_;
  RoleRunner runner_;
  double tokens_;
};

double length_of(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values)
    squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

class Slopes : public ::testing::TestWithParam<const char*> {};

TEST_P(Slopes, OfTheLossAreTheGradients) {
  VariantCase c;
  c.model = GetParam();
  c.layers = 2;
  c.global_batch = 2;
  c.training = R"(,"grad_clip":"none")";  // gradients stay as they were summed
  const Scenario scenario = variant(c);
  OneStep at(scenario);
  at.loss();
  for (std::size_t p = 0; p < at.parameters().size(); ++p) {
    const ElementRange range = at.parameters()[p].range;
    std::vector<float> direction = at.gradient(range);
    const double length = length_of(direction);
    ASSERT_GT(length, 0) << at.parameters()[p].parameter->name;
    for (float& value : direction) value /= static_cast<float>(length);
    const double step = std::min(0.05, 2e-3 / length);
    const auto moved = [&](double by) {
      OneStep other(scenario);
      other.move(range, direction, by);
      return other.loss();
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    EXPECT_NEAR(slope / length, 1, 0.02)
        << at.parameters()[p].parameter->name << " of layer " << at.parameters()[p].layer;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Slopes,
    ::testing::Values(
        R"(,"attention_window":5,"attention_window_every":2)",
        R"(,"mla":{"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":6,"qk_rope_head_dim":4,)"
        R"("v_head_dim":8})",
        R"(,"mla":{"kv_lora_rank":16,"qk_nope_head_dim":6,"qk_rope_head_dim":4,"v_head_dim":12})",
        R"(,"moe":{"experts":8,"top_k":2,"ffn":24})",
        R"(,"moe":{"experts":4,"top_k":2,"ffn":24,"shared_ffn":16,"dense_layers":1})",
        R"(,"moe":{"experts":8,"top_k":3,"ffn":16,"capacity_factor":1.25})",
        R"(,"mlp_bias":true,"moe":{"experts":8,"top_k":2,"ffn":24})",
        R"(,"attention_sinks":1,"attention_window":5,"attention_window_every":2)",
        R"(,"mtp_layers":2)",
        R"(,"mtp_layers":1,"tied_embeddings":true,"moe":{"experts":4,"top_k":2,"ffn":24})"));

}  // namespace
}  // namespace stepcast
