// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "read_text.h"

namespace stepcast {
namespace {

// Narayanan et al. (arXiv:2104.04473, equation 2), P = 12 l h^2 (1 + 13/(12h) + (V+s)/(12lh)), and
// the final norm, which it leaves out: 2h.
TEST(ParameterCount, OfGptIsTheClosedForm) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 100; ++trial) {
    const std::int64_t heads = 1 + static_cast<std::int64_t>(random() % 64);
    const std::int64_t h = heads * 64;
    const std::int64_t l = 1 + static_cast<std::int64_t>(random() % 100);
    const std::int64_t v = 1000 + static_cast<std::int64_t>(random() % 100000);
    const std::int64_t s = 1 + static_cast<std::int64_t>(random() % 4096);
    Model model = model_of(R"({"layers": 1, "hidden": 64, "heads": 1, "vocab": 1000})");
    model.layers = l;
    model.hidden = h;
    model.heads = model.kv_heads = heads;
    model.ffn = 4 * h;
    model.vocab = v;
    model.max_positions = s;
    EXPECT_EQ(count_parameters(model).total(), 12 * l * h * h + 13 * l * h + (v + s) * h + 2 * h);
  }
}

// Llama: attention 2h^2 + 2 h kv d, MLP 3hf, two norms; embedding and head apart; a final norm.
TEST(ParameterCount, OfLlamaFormIsTheClosedForm) {
  const Model model = model_of(R"({"layers": 3, "hidden": 512, "heads": 8, "kv_heads": 2,
    "ffn": 1408, "vocab": 1000, "mlp": "swiglu"})");
  const ParameterCount count = count_parameters(model);
  const std::int64_t layer = 2 * 512 * 512 + 2 * 512 * 2 * 64 + 3 * 512 * 1408 + 2 * 512;
  EXPECT_EQ(count.layers, 3 * layer + 512);
  EXPECT_EQ(count.embedding, 1000 * 512);
  EXPECT_EQ(count.head, 1000 * 512);
  EXPECT_EQ(count.active, count.total());
}

TEST(ParameterCount, LayersAddUpToTheModelsLayers) {
  for (const char* text :
       {R"({"layers": 7, "hidden": 256, "heads": 4, "vocab": 100})",
        R"({"layers": 6, "hidden": 256, "heads": 4, "ffn": 512, "vocab": 100, "mlp": "swiglu",
            "moe": {"experts": 8, "top_k": 2, "ffn": 128, "shared_experts": 1, "dense_layers": 1,
                    "layer_every": 2}})",
        R"({"layers": 4, "hidden": 256, "heads": 4, "ffn": 512, "vocab": 100, "mlp": "swiglu",
            "mla": {"q_lora_rank": 64, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
                    "qk_rope_head_dim": 16, "v_head_dim": 32}})"}) {
    const Model model = model_of(text);
    std::int64_t sum = 0;
    std::int64_t idle = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      sum += count_layer(model, layer).total();
      idle += count_layer(model, layer).experts - count_layer(model, layer).experts_active;
    }
    const ParameterCount count = count_parameters(model);
    const std::int64_t final_norm = model.norm_bias ? 2 * 256 : 256;
    EXPECT_EQ(count.layers, sum + final_norm) << text;
    EXPECT_EQ(count.total() - count.active, idle) << text;
  }
}

// Tensor parallelism leaves two norms of 2h and two biases of h whole in a GPT layer.
TEST(ParameterCount, OfGptLeavesNormsAndRowParallelBiasesWhole) {
  const Model model = model_of(R"({"layers": 1, "hidden": 64, "heads": 4, "vocab": 100})");
  const LayerParameters layer = count_layer(model, 0);
  EXPECT_EQ(layer.replicated, 2 * 2 * 64 + 2 * 64);
  EXPECT_EQ(layer.attention, 4 * 64 * 64 + 3 * 64);
  EXPECT_EQ(layer.mlp, 8 * 64 * 64 + 4 * 64);
  EXPECT_EQ(layer.experts, 0);
}

// MPT: LayerNorm without shift, no bias anywhere: 12 h^2 + 2h.
TEST(ParameterCount, WithoutBiasesALayerNormHasNoShift) {
  const Model model =
      model_of(R"({"layers": 1, "hidden": 64, "heads": 4, "vocab": 100, "biases": false})");
  EXPECT_EQ(count_layer(model, 0).total(), 12 * 64 * 64 + 2 * 64);
}

// DeepSeek-V2 without query compression: h n (dn+dr) + h (r+dr) + r + r n (dn+dv) + n dv h.
TEST(ParameterCount, OfLatentAttentionFollowsItsProjections) {
  const Model model = model_of(R"({"layers": 1, "hidden": 96, "heads": 4, "ffn": 100, "vocab": 10,
    "mlp": "swiglu", "mla": {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 20}})");
  const LayerParameters layer = count_layer(model, 0);
  EXPECT_EQ(layer.attention, 96 * 4 * 24 + 32 * 4 * (16 + 20) + 4 * 20 * 96);
  EXPECT_EQ(layer.replicated, 96 * (32 + 8) + 32 + 2 * 96);
  EXPECT_EQ(model.head_dim, 24);
}

// One expert is 3hf; a token visits top_k of them and always the shared one; the router is h E.
TEST(ParameterCount, OfExpertsSeparatesVisitedFromHeld) {
  const Model model = model_of(R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "ffn": 256,
    "mlp": "swiglu", "moe": {"experts": 8, "top_k": 3, "ffn": 32, "shared_experts": 2,
    "dense_layers": 1}})");
  EXPECT_EQ(count_layer(model, 0).mlp, 3 * 64 * 256);
  EXPECT_EQ(count_layer(model, 0).experts, 0);
  const LayerParameters sparse = count_layer(model, 1);
  EXPECT_EQ(sparse.experts, 8 * 3 * 64 * 32);
  EXPECT_EQ(sparse.experts_active, 3 * 3 * 64 * 32);
  EXPECT_EQ(sparse.mlp, 3 * 64 * 64);
  EXPECT_EQ(sparse.replicated, 64 * 8 + 2 * 64);
}

TEST(MoeLayers, FollowTheDenseOnesAsTheLastOfEachGroup) {
  Model model;
  model.layers = 8;
  EXPECT_FALSE(model.is_moe_layer(0));
  model.moe = Moe{.experts = 4, .dense_layers = 1, .layer_every = 2};
  std::string pattern;
  for (int layer = 0; layer < 8; ++layer) pattern += model.is_moe_layer(layer) ? 'x' : '.';
  EXPECT_EQ(pattern, "..x.x.x.");
  model.moe->layer_list = {0, 7};
  pattern.clear();
  for (int layer = 0; layer < 8; ++layer) pattern += model.is_moe_layer(layer) ? 'x' : '.';
  EXPECT_EQ(pattern, "x......x");
}

TEST(AttentionWindow, LeavesTheLastLayerOfEachPeriodFull) {
  Model model;
  model.layers = 6;
  EXPECT_FALSE(model.is_windowed(0));
  model.attention_window = 128;
  for (std::int64_t layer = 0; layer < 6; ++layer) EXPECT_TRUE(model.is_windowed(layer));
  model.attention_window_every = 3;
  std::string pattern;
  for (std::int64_t layer = 0; layer < 6; ++layer) pattern += model.is_windowed(layer) ? 'w' : '.';
  EXPECT_EQ(pattern, "ww.ww.");
  model.window_layers = {false, true, false, false, false, true};
  EXPECT_FALSE(model.is_windowed(0));
  EXPECT_TRUE(model.is_windowed(5));
}

}  // namespace
}  // namespace stepcast
