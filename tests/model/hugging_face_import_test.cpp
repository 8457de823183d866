// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "read_text.h"

namespace stepcast {
namespace {

std::string pattern_of(const Model& model, bool (Model::*property)(std::int64_t) const) {
  std::string pattern;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    pattern += (model.*property)(layer) ? 'x' : '.';
  }
  return pattern;
}

TEST(HuggingFaceImport, RejectsMissingHiddenSizeNamingTheKey) {
  const Error error =
      error_of(R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4})");
  EXPECT_EQ(error.path, "hidden_size");
  EXPECT_EQ(error.code, ErrorCode::kMissingKey);
}

TEST(HuggingFaceImport, RejectsWrongTypesAndShapesThatDoNotDivide) {
  Error error = error_of(R"({"model_type": "llama", "hidden_size": "4096", "num_hidden_layers": 2,
    "num_attention_heads": 4})");
  EXPECT_EQ(error.path, "hidden_size");
  EXPECT_EQ(error.code, ErrorCode::kWrongType);
  error = error_of(R"({"model_type": "gpt2", "n_embd": 100, "n_layer": 2, "n_head": 3})");
  EXPECT_EQ(error.path, "n_head");
  EXPECT_EQ(error.code, ErrorCode::kIllegal);
  error = error_of(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 3})");
  EXPECT_EQ(error.path, "num_key_value_heads");
  error = error_of(R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_local_experts": 4, "num_experts_per_tok": 5})");
  EXPECT_EQ(error.path, "num_experts_per_tok");
}

TEST(HuggingFaceImport, AnUnknownFamilyListsTheSupportedOnes) {
  const Error error = error_of(R"({"model_type": "lama", "hidden_size": 64})");
  EXPECT_EQ(error.path, "model_type");
  EXPECT_EQ(error.code, ErrorCode::kNotSupported);
  // A machine wrote the name: one that is near is another family, not a mistake.
  EXPECT_EQ(error.hint.find("did you mean"), std::string::npos) << error.hint;
  for (const std::string& family : supported_families()) {
    EXPECT_NE(error.hint.find(family), std::string::npos) << family;
  }
}

TEST(HuggingFaceImport, TellsWhatAnAssumedFamilyHasNot) {
  constexpr const char* kShape = R"("hidden_size": 4096, "num_hidden_layers": 52,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 21504,
      "vocab_size": 131072, "architectures": ["X"], "torch_dtype": "bfloat16",
      "rms_norm_eps": 1e-5, "hidden_act": "silu", "use_cache": true, "bos_token_id": 1)";
  const auto beyond = [&](const std::string& more, const std::string& family = "llama") {
    const auto document =
        JsonDocument::parse("{\"model_type\": \"x\", " + std::string(kShape) + more + "}", "");
    EXPECT_TRUE(document.has_value());
    return keys_beyond((*document)->root(), family);
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(beyond(""), Keys{});
  EXPECT_EQ(beyond(R"(, "num_experts": null, "use_mla": false, "extra_layers": 0, "list": [])"),
            Keys{});
  EXPECT_EQ(beyond(R"(, "hybrid_override_pattern": "M-M*")"), Keys{"hybrid_override_pattern"});
  EXPECT_EQ(beyond(R"(, "index_topk": 2048, "linear_attn_config": {"heads": 4})"),
            (Keys{"index_topk", "linear_attn_config"}));
  EXPECT_EQ(beyond(R"(, "num_experts": 64)"), Keys{"num_experts"});
  EXPECT_EQ(beyond(R"(, "num_experts": 64)", "qwen3_moe"), Keys{});
  EXPECT_EQ(beyond(R"(, "layer_types": ["full_attention"])"), Keys{});
  EXPECT_EQ(beyond(R"(, "layer_types": ["linear_attention"])"), Keys{"layer_types"});
  EXPECT_EQ(beyond(R"(, "hidden_activation": "relu2")"), Keys{"hidden_activation"});
}

TEST(HuggingFaceImport, SupportsEveryFamilyItDocuments) {
  const std::vector<std::string> families = supported_families();
  for (const char* family :
       {"llama",       "mistral",     "qwen2",   "qwen3",    "phi3",      "olmo2",
        "gemma2",      "gemma3",      "gpt2",    "gpt_neox", "opt",       "bloom",
        "mpt",         "falcon",      "phi",     "mixtral",  "qwen2_moe", "qwen3_moe",
        "deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe", "gpt_oss",   "llama4"}) {
    EXPECT_NE(std::find(families.begin(), families.end(), family), families.end()) << family;
    // Each reads a file of the barest kind: its class's defaults fill in the rest.
    const Reading reading = read_text(std::string(R"({"model_type": ")") + family +
                                      R"(", "hidden_size": 1024, "num_hidden_layers": 4,
        "num_attention_heads": 32, "n_routed_experts": 64, "num_experts_per_tok": 2})");
    EXPECT_TRUE(reading.errors.empty()) << family << ": " << reading.text();
    EXPECT_GT(count_parameters(reading.model).total(), 0) << family;
  }
}

TEST(HuggingFaceImport, AssumeReadsAnUnknownFamilyAsANamedOne) {
  const char* text = R"({"model_type": "newllm", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100})";
  const Model model = model_of(text, "llama");
  EXPECT_EQ(model.mlp, Mlp::kSwiglu);
  EXPECT_EQ(error_of(text, "lama").code, ErrorCode::kBadValue);
  // A known family is read as itself.
  EXPECT_EQ(
      model_of(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4})", "llama").mlp,
      Mlp::kGelu);
}

TEST(HuggingFaceImport, IgnoresKeysThatShapeNothing) {
  model_of(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16",
    "rope_parameters": {"rope_theta": 1e6}, "quantization_config": {"quant_method": "fp8"}})");
}

TEST(HuggingFaceImport, ReadsTheNestedTextConfig) {
  const Model model = model_of(R"({"model_type": "gemma3", "vision_config": {"hidden_size": 1152},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                    "num_hidden_layers": 34, "sliding_window": 1024}})");
  EXPECT_EQ(model.layers, 34);
  EXPECT_EQ(model.heads, 8);  // left out of the file: the class's default
  EXPECT_EQ(model.head_dim, 256);
  EXPECT_EQ(model.vocab, 262208);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(pattern_of(model, &Model::is_windowed).substr(0, 12), "xxxxx.xxxxx.");
  const Error error = error_of(R"({"model_type": "gemma3", "text_config": {"hidden_size": 64}})");
  EXPECT_EQ(error.path, "text_config.num_hidden_layers");
}

TEST(HuggingFaceImport, OldAndNewNamesOfTheExpertsAgree) {
  const std::string head = R"({"model_type": "qwen3_moe", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_experts_per_tok": 2, )";
  const Model old_name = model_of(head + R"("num_experts": 16})");
  const Model new_name = model_of(head + R"("num_local_experts": 16})");
  EXPECT_EQ(old_name.moe->experts, 16);
  EXPECT_EQ(new_name.moe->experts, 16);
}

TEST(HuggingFaceImport, QwenStatesItsSparseLayersByStepAndList) {
  const std::string head = R"({"model_type": "qwen3_moe", "hidden_size": 64,
    "num_hidden_layers": 8, "num_attention_heads": 4, "decoder_sparse_step": 2)";
  EXPECT_EQ(pattern_of(model_of(head + "}"), &Model::is_moe_layer), ".x.x.x.x");
  EXPECT_EQ(pattern_of(model_of(head + R"(, "mlp_only_layers": [3]})"), &Model::is_moe_layer),
            ".x...x.x");
  const Error error = error_of(head + R"(, "mlp_only_layers": [9]})");
  EXPECT_EQ(error.path, "mlp_only_layers[0]");
}

TEST(HuggingFaceImport, DeepSeekCountsItsSparseLayersFromZero) {
  const Model model = model_of(R"({"model_type": "deepseek_v3", "hidden_size": 64,
    "num_hidden_layers": 8, "num_attention_heads": 4, "first_k_dense_replace": 3,
    "moe_layer_freq": 2})");
  EXPECT_EQ(pattern_of(model, &Model::is_moe_layer), "....x.x.");
}

// Llama 4: MoE every second layer, a block of 8,192 tokens but in each fourth layer.
TEST(HuggingFaceImport, Llama4InterleavesExpertsAndFullAttention) {
  const Model model = model_of(R"({"model_type": "llama4", "text_config": {
    "model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 8,
    "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "num_local_experts": 128, "interleave_moe_layer_step": 2}})");
  EXPECT_EQ(pattern_of(model, &Model::is_moe_layer), ".x.x.x.x");
  EXPECT_EQ(pattern_of(model, &Model::is_windowed), "xxx.xxx.");
  EXPECT_TRUE(model.attention_chunked);
  EXPECT_EQ(model.moe->shared_ffn, 8192);
  EXPECT_EQ(count_layer(model, 0).mlp, 3 * 5120 * 16384);
}

TEST(HuggingFaceImport, WindowsComeFromThePeriodOrTheList) {
  const std::string gemma = R"({"model_type": "gemma2", "hidden_size": 64,
    "num_hidden_layers": 4, "num_attention_heads": 4, "sliding_window": 32)";
  EXPECT_EQ(pattern_of(model_of(gemma + "}"), &Model::is_windowed), "x.x.");
  const Model listed = model_of(gemma + R"(, "layer_types": ["full_attention",
    "sliding_attention", "sliding_attention", "full_attention"]})");
  EXPECT_EQ(pattern_of(listed, &Model::is_windowed), ".xx.");
  EXPECT_EQ(error_of(gemma + R"(, "layer_types": ["full_attention"]})").path, "layer_types");
  const Error linear = error_of(gemma + R"(, "layer_types": ["linear_attention",
    "full_attention", "full_attention", "full_attention"]})");
  EXPECT_EQ(linear.path, "layer_types[0]");
  EXPECT_EQ(linear.code, ErrorCode::kNotSupported);
}

TEST(HuggingFaceImport, AnExplicitNullSwitchesTheWindowOff) {
  const std::string head = R"({"model_type": "mistral", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 8)";
  EXPECT_EQ(model_of(head + "}").attention_window, 4096);
  EXPECT_EQ(model_of(head + R"(, "sliding_window": null})").attention_window, 0);
  // A null means as many as heads; the class's default of 8 holds only where the file is silent.
  EXPECT_EQ(model_of(head + R"(, "num_key_value_heads": null})").kv_heads, 8);
}

TEST(HuggingFaceImport, QwenUsesItsWindowOnlyWhenSwitchedOn) {
  const std::string head = R"({"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 32, "sliding_window": 16, "max_window_layers": 3)";
  EXPECT_EQ(model_of(head + "}").attention_window, 0);
  const Model on = model_of(head + R"(, "use_sliding_window": true})");
  EXPECT_EQ(pattern_of(on, &Model::is_windowed), "...x");
}

TEST(HuggingFaceImport, Opt350mProjectsItsNarrowEmbeddingAndHasNoFinalNorm) {
  const Model model = model_of(R"({"model_type": "opt", "hidden_size": 1024,
    "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096,
    "word_embed_proj_dim": 512, "do_layer_norm_before": false})");
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.embedding, 50272 * 512 + 2 * 512 * 1024 + (2048 + 2) * 1024);
  EXPECT_FALSE(model.final_norm);
}

// Falcon-40B: one norm for attention and one for the MLP, eight key-value heads, tied, no biases.
TEST(HuggingFaceImport, FalconsNewFormHasTwoNormsAndGroupedHeads) {
  const Model model = model_of(R"({"model_type": "falcon", "hidden_size": 8192,
    "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
    "new_decoder_architecture": true, "vocab_size": 65024})");
  const std::int64_t h = 8192;
  const std::int64_t layer = 2 * h * h + 2 * h * 8 * 64 + 8 * h * h + 2 * 2 * h;
  EXPECT_EQ(count_parameters(model).total(), 60 * layer + 65024 * h + 2 * h);
  EXPECT_TRUE(model.parallel_block);
}

TEST(HuggingFaceImport, DropoutComesFromTheFamilysOwnKey) {
  const std::string shape = R"("n_embd": 64, "n_layer": 2, "n_head": 4})";
  EXPECT_DOUBLE_EQ(model_of(R"({"model_type": "gpt2", )" + shape).dropout, 0.1);
  EXPECT_DOUBLE_EQ(model_of(R"({"model_type": "gpt2", "resid_pdrop": 0.0, )" + shape).dropout, 0);
  EXPECT_DOUBLE_EQ(model_of(R"({"model_type": "llama", )" + shape).dropout, 0);
}

}  // namespace
}  // namespace stepcast
