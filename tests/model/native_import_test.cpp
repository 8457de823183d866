// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "read_text.h"

namespace stepcast {
namespace {

TEST(NativeImport, GptFormIsTheDefault) {
  const Model model = model_of(R"({"layers": 12, "hidden": 768, "heads": 12, "vocab": 50257})");
  EXPECT_EQ(model.ffn, 4 * 768);
  EXPECT_EQ(model.kv_heads, 12);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.norm, Norm::kLayerNorm);
  EXPECT_EQ(model.position, Position::kLearned);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_TRUE(model.qkv_bias && model.attention_output_bias && model.mlp_bias && model.norm_bias);
  EXPECT_FALSE(model.max_positions_stated);
  EXPECT_LT(model.dropout, 0);  // not stated: the framework's default holds
}

TEST(NativeImport, AGatedMlpBringsLlamasForm) {
  const Model model = model_of(R"({"layers": 2, "hidden": 512, "heads": 8, "kv_heads": 2,
    "ffn": 1408, "vocab": 32000, "mlp": "swiglu"})");
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_EQ(model.position, Position::kRope);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_FALSE(model.qkv_bias || model.mlp_bias || model.norm_bias);
}

TEST(NativeImport, StatedKeysOverrideTheForm) {
  const Model model = model_of(R"({"name": "odd", "layers": 2, "hidden": 100, "heads": 3,
    "head_dim": 32, "ffn": 200, "vocab": 10, "mlp": "swiglu", "norm": "layernorm",
    "position": "alibi", "tied_embeddings": true, "biases": true, "dropout": 0.1,
    "max_positions": 77, "attention_window": 5, "attention_window_every": 2, "mtp_layers": 1,
    "vocab_multiple": 64})");
  EXPECT_EQ(model.name, "odd");
  EXPECT_EQ(model.head_dim, 32);
  EXPECT_EQ(model.position, Position::kAlibi);
  EXPECT_TRUE(model.tied_embeddings && model.qkv_bias && model.norm_bias);
  EXPECT_DOUBLE_EQ(model.dropout, 0.1);
  EXPECT_EQ(model.max_positions, 77);
  EXPECT_TRUE(model.max_positions_stated);
  EXPECT_EQ(model.attention_window_every, 2);
  EXPECT_EQ(model.mtp_layers, 1);
  EXPECT_EQ(model.vocab_multiple, 64);
}

TEST(NativeImport, ARouterLeftToLearnIsUneven) {
  const auto with = [](const std::string& keys) {
    return model_of(R"({"layers": 4, "hidden": 64, "heads": 4, "vocab": 10, "ffn": 256,
                        "moe": {"experts": 8, "top_k": 2, "ffn": 32)" +
                    keys + "}}");
  };
  EXPECT_DOUBLE_EQ(with("").moe->imbalance, 1);
  EXPECT_DOUBLE_EQ(with(R"(, "routing": "balanced")").moe->imbalance, 1);
  EXPECT_DOUBLE_EQ(with(R"(, "routing": "learned")").moe->imbalance, 1.6);
  EXPECT_DOUBLE_EQ(with(R"(, "routing": "learned", "imbalance": 1.2)").moe->imbalance, 1.2);
}

TEST(NativeImport, KeepsEveryKeyOfTheExperts) {
  const Model model = model_of(R"({"layers": 4, "hidden": 64, "heads": 4, "vocab": 10, "ffn": 256,
    "moe": {"experts": 8, "top_k": 2, "ffn": 32, "shared_experts": 2, "dense_layers": 1,
            "layer_every": 1, "capacity_factor": 1.25, "imbalance": 1.5,
            "dispatcher": "allgather"}})");
  ASSERT_TRUE(model.moe);
  EXPECT_EQ(model.moe->shared_ffn, 64);
  EXPECT_DOUBLE_EQ(model.moe->capacity_factor, 1.25);
  EXPECT_DOUBLE_EQ(model.moe->imbalance, 1.5);
  EXPECT_EQ(model.moe->dispatcher, MoeDispatcher::kAllGather);
}

struct BadModel {
  const char* text;
  const char* path;
  ErrorCode code;
};

// Each text has one mistake: it must give one error, at that key.
TEST(NativeImport, NamesTheKeyOfEachMistake) {
  const BadModel cases[] = {
      {R"({"layers": 2, "heads": 4, "vocab": 10})", "hidden", ErrorCode::kMissingKey},
      {R"({"layers": 2, "hidden": 64, "heads": 4})", "vocab", ErrorCode::kMissingKey},
      {R"({"layers": 0, "hidden": 64, "heads": 4, "vocab": 10})", "layers", ErrorCode::kBadValue},
      {R"({"layers": 2, "hidden": -64, "heads": 4, "vocab": 10})", "hidden", ErrorCode::kBadValue},
      {R"({"layers": "2", "hidden": 64, "heads": 4, "vocab": 10})", "layers",
       ErrorCode::kWrongType},
      {R"({"layers": 2.5, "hidden": 64, "heads": 4, "vocab": 10})", "layers",
       ErrorCode::kWrongType},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 1e18})", "vocab", ErrorCode::kWrongType},
      {R"({"layers": 2, "hidden": 999999999999, "heads": 4, "vocab": 10})", "hidden",
       ErrorCode::kBadValue},
      {R"({"layers": 16384, "hidden": 1048576, "heads": 128, "vocab": 10})", "layers",
       ErrorCode::kBadValue},
      {R"({"layers": 2, "hidden": 1048576, "heads": 128, "vocab": 10, "mtp_layers": 16384})",
       "layers", ErrorCode::kBadValue},
      {R"({"layers": 2, "hidden": 100, "heads": 3, "vocab": 10})", "heads", ErrorCode::kIllegal},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 3, "vocab": 10})", "kv_heads",
       ErrorCode::kIllegal},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "mlp": "swiglu"})", "ffn",
       ErrorCode::kMissingKey},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "mlp": "swigul"})", "mlp",
       ErrorCode::kBadValue},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "dropout": 1.5})", "dropout",
       ErrorCode::kBadValue},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "kvheads": 2})", "kvheads",
       ErrorCode::kUnknownKey},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "biases": "no"})", "biases",
       ErrorCode::kWrongType},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "moe": {"top_k": 2, "ffn": 8}})",
       "moe.experts", ErrorCode::kMissingKey},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10,
           "moe": {"experts": 4, "top_k": 8, "ffn": 8}})",
       "moe.top_k", ErrorCode::kIllegal},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10,
           "moe": {"experts": 4, "top_k": 2, "ffn": 8, "dense_layers": 3}})",
       "moe.dense_layers", ErrorCode::kIllegal},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10,
           "moe": {"experts": 4, "top_k": 2, "ffn": 8, "imbalance": 0.5}})",
       "moe.imbalance", ErrorCode::kBadValue},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "moe": [4, 2]})", "moe",
       ErrorCode::kWrongType},
      {R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10,
           "mla": {"qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}})",
       "mla.kv_lora_rank", ErrorCode::kMissingKey},
      {R"({"hidden": 64})", "", ErrorCode::kMissingKey},
      {R"(["llama"])", "", ErrorCode::kWrongType},
  };
  for (const BadModel& bad : cases) {
    const Error error = error_of(bad.text);
    EXPECT_EQ(error.path, bad.path) << bad.text << "\n" << to_string(error);
    EXPECT_EQ(error.code, bad.code) << bad.text << "\n" << to_string(error);
    EXPECT_EQ(error.file, "model.json");
  }
}

TEST(NativeImport, ListsAllErrorsOfAFile) {
  const Reading reading =
      read_text(R"({"layers": -1, "hidden": "wide", "heads": 4, "voacb": 10, "mlp": "gelu"})");
  ASSERT_EQ(reading.errors.size(), 4u) << reading.text();
}

TEST(NativeImport, SuggestsTheNearestKeyAndValue) {
  EXPECT_NE(error_of(R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 9, "kvheads": 2})")
                .hint.find("kv_heads"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 9, "norm": "rms_norm"})")
                .hint.find("rmsnorm"),
            std::string::npos);
}

}  // namespace
}  // namespace stepcast
