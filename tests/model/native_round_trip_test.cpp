// SPDX-License-Identifier: Apache-2.0
// Every shipped model, written as the native object and read back, is the model that it was.
#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "model/import_native.h"
#include "model/shipped_folder.h"
#include "read_text.h"

namespace stepcast {
namespace {

std::vector<std::string> shipped() {
  const auto list = list_models(kShippedModels);
  EXPECT_TRUE(list) << to_string(list.error());
  std::vector<std::string> names;
  if (list) {
    for (const ModelEntry& entry : *list) names.push_back(entry.name);
  }
  return names;
}

class NativeRoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(NativeRoundTrip, ReadsBackAsTheSameModel) {
  const auto model = find_model(GetParam(), kShippedModels);
  ASSERT_TRUE(model) << to_string(model.error());
  const SortedJson native = to_native_json(*model);
  const Model again = model_of(json_text(native));
  EXPECT_EQ(to_native_json(again), native);
  EXPECT_EQ(count_parameters(again).total(), count_parameters(*model).total());
  EXPECT_EQ(count_parameters(again).active, count_parameters(*model).active);
  EXPECT_EQ(count_parameters(again).embedding, count_parameters(*model).embedding);
  for (std::int64_t layer = 0; layer < model->layers; ++layer) {
    const LayerParameters one = count_layer(again, layer), was = count_layer(*model, layer);
    EXPECT_EQ(one.total(), was.total()) << layer;
    EXPECT_EQ(one.replicated, was.replicated) << layer;
    EXPECT_EQ(one.experts_active, was.experts_active) << layer;
    EXPECT_EQ(again.is_windowed(layer), model->is_windowed(layer)) << layer;
    EXPECT_EQ(again.is_moe_layer(layer), model->is_moe_layer(layer)) << layer;
  }
  EXPECT_EQ(again.parallel_block, model->parallel_block);
  EXPECT_EQ(again.attention_chunked, model->attention_chunked);
  EXPECT_EQ(again.dropout, model->dropout);
  EXPECT_EQ(again.vocab_multiple, model->vocab_multiple);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Shipped, NativeRoundTrip, ::testing::ValuesIn(shipped()), test_name);

// Each trait, stated against its form, arrives and is written again.
TEST(NativeTraits, OverrideTheFormOneByOne) {
  const SortedJson plain = {{"layers", 4}, {"hidden", 64}, {"heads", 4}, {"vocab", 10}};
  const SortedJson traits = {{"qkv_bias", false},      {"attention_output_bias", false},
                             {"norm_bias", false},     {"head_bias", true},
                             {"parallel_block", true}, {"embedding_norm", true},
                             {"query_key_norm", true}, {"wide_query_key_norm", true},
                             {"final_norm", false},    {"norms_per_layer", 4},
                             {"position_offset", 2},   {"attention_sinks", 1},
                             {"embedding_width", 32},  {"mtp_layers", 1},
                             {"vocab_multiple", 128}};
  for (const auto& [key, value] : traits.items()) {
    EXPECT_FALSE(to_native_json(model_of(json_text(plain))).contains(key)) << key;
    SortedJson stated = plain;
    stated[key] = value;
    const SortedJson written = to_native_json(model_of(json_text(stated)));
    EXPECT_EQ(written.value(key, SortedJson()), value) << key;
    EXPECT_EQ(to_native_json(model_of(json_text(written))), written) << key;
  }
}

TEST(NativeTraits, BiasesOfTheMlpCanDifferFromThoseOfTheAttention) {
  const Model model = model_of(
      R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 10, "biases": true, "mlp_bias": false})");
  EXPECT_TRUE(model.qkv_bias && model.attention_output_bias && model.norm_bias);
  EXPECT_FALSE(model.mlp_bias);
  const Model again = model_of(json_text(to_native_json(model)));
  EXPECT_EQ(count_layer(again, 0).total(), count_layer(model, 0).total());
  EXPECT_TRUE(again.qkv_bias && !again.mlp_bias);
}

TEST(NativeTraits, ListsOfLayersNameThemByNumber) {
  const Model model = model_of(R"({"layers": 4, "hidden": 64, "heads": 4, "vocab": 10, "ffn": 128,
    "attention_window": 16, "attention_chunked": true, "window_layers": [0, 3],
    "moe": {"experts": 4, "top_k": 1, "ffn": 32, "layer_list": [1, 2], "router_bias": true,
            "shared_experts": 1, "shared_gate": true, "capacity_factor": 1.5}})");
  EXPECT_TRUE(model.is_windowed(0) && !model.is_windowed(1) && model.is_windowed(3));
  EXPECT_TRUE(!model.is_moe_layer(0) && model.is_moe_layer(1) && !model.is_moe_layer(3));
  EXPECT_TRUE(model.attention_chunked && model.moe->router_bias && model.moe->shared_gate);
  const SortedJson written = to_native_json(model);
  EXPECT_EQ(to_native_json(model_of(json_text(written))), written);
}

struct BadTrait {
  const char* member;
  const char* path;
  ErrorCode code;
};

TEST(NativeTraits, NameTheKeyOfEachMistake) {
  const BadTrait cases[] = {
      {R"("qkv_bias": 1)", "qkv_bias", ErrorCode::kWrongType},
      {R"("norms_per_layer": 5)", "norms_per_layer", ErrorCode::kBadValue},
      {R"("position_offset": -1)", "position_offset", ErrorCode::kBadValue},
      {R"("embedding_width": 0)", "embedding_width", ErrorCode::kBadValue},
      {R"("query_key_norm": true, "wide_query_key_norm": true)", "wide_query_key_norm",
       ErrorCode::kIllegal},
      {R"("attention_window": 8, "window_layers": [2, 1])", "window_layers[1]",
       ErrorCode::kBadValue},
      {R"("attention_window": 8, "window_layers": [1, 1])", "window_layers[1]",
       ErrorCode::kBadValue},
      {R"("attention_window": 8, "window_layers": [4])", "window_layers[0]", ErrorCode::kBadValue},
      {R"("attention_window": 8, "window_layers": [])", "window_layers", ErrorCode::kBadValue},
      {R"("attention_window": 8, "window_layers": 3)", "window_layers", ErrorCode::kWrongType},
      {R"("moe": {"experts": 4, "top_k": 1, "ffn": 8, "layer_list": ["1"]})", "moe.layer_list[0]",
       ErrorCode::kWrongType},
      {R"("head_biass": true)", "head_biass", ErrorCode::kUnknownKey},
  };
  for (const BadTrait& bad : cases) {
    const Error error = error_of(R"({"layers": 4, "hidden": 64, "heads": 4, "vocab": 10, )" +
                                 std::string(bad.member) + "}");
    EXPECT_EQ(error.path, bad.path) << bad.member << "\n" << to_string(error);
    EXPECT_EQ(error.code, bad.code) << bad.member << "\n" << to_string(error);
  }
}

}  // namespace
}  // namespace stepcast
