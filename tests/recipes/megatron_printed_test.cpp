// SPDX-License-Identifier: Apache-2.0
// Megatron's arguments as programs write them down themselves: its log, and Megatron-Bridge's YAML.
#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "recipes/has.h"
#include "recipes/import.h"
#include "recipes/megatron.h"

namespace stepcast {
namespace {

using testing::has;

ImportedScenario printed(const std::string& text) {
  ImportInput input;
  input.text = text;
  input.file = "run_config.yaml";
  return read_megatron(input);
}

// NVIDIA-NeMo/Megatron-Bridge's form: sections in the order of the alphabet, functions by their
// names. Sizes of Qwen3 30B.
const std::string kBridge = R"(_target_: megatron.bridge.training.config.ConfigContainer
comm_overlap:
  _target_: megatron.bridge.training.comm_overlap.CommOverlapConfig
  tp_comm_overlap: true
ddp:
  _target_: megatron.bridge.training.config.DistributedDataParallelConfig
  grad_reduce_in_fp32: true
  overlap_grad_reduce: true
  overlap_param_gather: true
  use_distributed_optimizer: true
mixed_precision: bf16_with_fp8_current_scaling_mixed
model:
  _target_: megatron.bridge.models.Qwen3MoEProvider
  activation_func:
    _call_: false
    _target_: torch.nn.functional.silu
  add_bias_linear: false
  attention_backend: null
  context_parallel_size: 1
  expert_model_parallel_size: 8
  expert_tensor_parallel_size: 1
  ffn_hidden_size: 6144
  gated_linear_unit: true
  hidden_dropout: 0.0
  attention_dropout: 0.0
  hidden_size: 2048
  kv_channels: 128
  layernorm_epsilon: 1.0e-06
  moe_ffn_hidden_size: 768
  moe_router_topk: 8
  moe_layer_freq: 1
  moe_token_dispatcher_type: alltoall
  mtp_num_layers: null
  new_switch: true
  normalization: RMSNorm
  num_attention_heads: 32
  num_layers: 48
  num_moe_experts: 128
  num_query_groups: 4
  params_dtype:
    _call_: false
    _target_: torch.bfloat16
  pipeline_model_parallel_size: 1
  position_embedding_type: rope
  qk_layernorm: true
  recompute_granularity: null
  rotary_base: 1000000.0
  seq_length: 4096
  sequence_parallel: true
  share_embeddings_and_output_weights: false
  tensor_model_parallel_size: 2
  vocab_size: 151936
optimizer:
  optimizer: adam
  clip_grad: 1.0
train:
  global_batch_size: 512
  micro_batch_size: 1
)";

TEST(MegatronPrinted, BridgesYamlIsAScenario) {
  const ImportedScenario imported = printed(kBridge);
  ASSERT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  const SortedJson scenario = scenario_document(imported);
  const auto expect = [&](const char* path, const SortedJson& value) {
    const SortedJson* found = scenario.find_path(path);
    ASSERT_NE(found, nullptr) << path;
    EXPECT_EQ(*found, value) << path;
  };
  expect("model.layers", 48);
  expect("model.hidden", 2048);
  expect("model.heads", 32);
  expect("model.kv_heads", 4);
  expect("model.vocab", 151936);
  expect("model.mlp", "swiglu");
  expect("model.norm", "rmsnorm");
  expect("model.position", "rope");
  expect("model.biases", false);
  expect("model.tied_embeddings", false);
  expect("model.query_key_norm", true);
  expect("model.moe.experts", 128);
  expect("model.moe.top_k", 8);
  expect("model.moe.ffn", 768);
  expect("model.moe.dispatcher", "alltoall");
  expect("training.global_batch", 512);
  expect("training.sequence_length", 4096);
  expect("training.precision", "fp8");
  expect("training.fp8_recipe", "current");
  expect("layout.micro_batch", 1);
  expect("layout.tp", 2);
  expect("layout.ep", 8);
  expect("layout.etp", 1);
  expect("layout.zero", 1);
  expect("layout.sequence_parallel", true);
  expect("layout.overlap.grad_reduce", true);
  expect("layout.overlap.param_gather", true);
  expect("layout.overlap.tp", true);
  EXPECT_EQ(scenario.find_path("layout.recompute"), nullptr);
  EXPECT_EQ(scenario.find_path("model.mtp_layers"), nullptr);
  ASSERT_FALSE(imported.warnings.empty());
  EXPECT_TRUE(has(imported.warnings.back(), "--new-switch")) << imported.warnings.back();
}

TEST(MegatronPrinted, APartOfAConfigurationIsRefused) {
  const ImportedScenario imported =
      printed("train:\n  global_batch_size: 8\nmodel:\n  seq_length: 9\n");
  EXPECT_FALSE(imported.errors.empty());
}

// Forks write dots of another length, marks in front, and where a value is from behind it.
TEST(MegatronPrinted, FormsOfForksAreRead) {
  const ImportedScenario imported = printed(
      ">   bf16 ............................ True\n"
      ">   global_batch_size ............... 64...........................updated\n"
      ">   hidden_size ..................... 1024.........................default\n"
      ">   micro_batch_size ................ 4............................updated\n"
      ">   num_attention_heads ............. 16\n"
      ">   num_layers ...................... 24\n"
      ">   seq_length ...................... 2048\n"
      ">   vocab_size ...................... 50257\n"
      ">   world_size ...................... 8\n");
  ASSERT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  EXPECT_EQ(imported.gpus, 8);
  EXPECT_EQ(imported.integer("training.global_batch"), 64);
  EXPECT_EQ(imported.integer("model.hidden"), 1024);
  EXPECT_EQ(imported.integer("layout.micro_batch"), 4);
  EXPECT_EQ(imported.integer("training.sequence_length"), 2048);
}

}  // namespace
}  // namespace stepcast
