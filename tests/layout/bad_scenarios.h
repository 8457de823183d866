// SPDX-License-Identifier: Apache-2.0
// Scenarios that must be refused, each with the key path, the kind of error and words of the
// message that it must give. The same table drives the tests of the reader and of the command line.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast::testing {

struct BadScenario {
  std::string name;  // an identifier
  std::string text;  // the file
  std::string path;  // of the error; "" when the file as a whole is wrong
  ErrorCode code;
  std::string words;  // somewhere in message or hint
};

// GoogleTest shows a case by its name.
inline void PrintTo(const BadScenario& bad, std::ostream* out) { *out << bad.name; }

// 64 GPUs, tp 4, pp 4, dp 4, 32 micro-batches: legal.
inline SortedJson good_scenario() {
  return SortedJson::parse(R"({
    "stepcast": 1,
    "model": {"name": "m", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336,
              "vocab": 32000, "max_positions": 8192, "mlp": "swiglu", "norm": "rmsnorm",
              "position": "rope", "tied_embeddings": false, "biases": false},
    "cluster": {"base": "dgx-h100", "nodes": 8},
    "training": {"global_batch": 128, "sequence_length": 4096},
    "layout": {"tp": 4, "pp": 4, "micro_batch": 1}
  })");
}

// RFC 7396: null removes a key.
inline void merge_patch(SortedJson& onto, const SortedJson& patch) {
  if (!onto.is_object()) onto = SortedJson::object();
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null()) {
      onto.erase(key);
    } else if (value.is_object()) {
      merge_patch(onto[key], value);
    } else {
      onto[key] = value;
    }
  }
}

// The legal scenario with some keys changed.
inline std::string patched(const char* patch) {
  SortedJson scenario = good_scenario();
  merge_patch(scenario, SortedJson::parse(patch));
  return json_text(scenario, 1);
}

inline std::vector<BadScenario> bad_files() {
  const std::string good = json_text(good_scenario(), 1);
  return {
      {"empty_file", "", "", ErrorCode::kSyntax, "JSON"},
      {"truncated", good.substr(0, good.size() / 2), "", ErrorCode::kSyntax, "JSON"},
      {"trailing_comma", R"({"stepcast": 1,})", "", ErrorCode::kSyntax, "JSON"},
      {"key_twice", R"({"stepcast": 1, "stepcast": 1})", "stepcast", ErrorCode::kSyntax, "twice"},
      {"not_an_object", "[1, 2]", "", ErrorCode::kWrongType, "must be an object"},
      {"a_bare_number", "7", "", ErrorCode::kWrongType, "must be an object"},
      {"no_format", patched(R"({"stepcast": null})"), "stepcast", ErrorCode::kFormat, "missing"},
      {"format_2", patched(R"({"stepcast": 2})"), "stepcast", ErrorCode::kFormat, "format 2"},
      {"format_text", patched(R"({"stepcast": "1"})"), "stepcast", ErrorCode::kFormat,
       "\"stepcast\": 1"},
      {"unknown_top_key", patched(R"({"trainings": {}})"), "trainings", ErrorCode::kUnknownKey,
       "did you mean 'training'?"},
      {"no_model", patched(R"({"model": null})"), "model", ErrorCode::kMissingKey, "required"},
      {"model_number", patched(R"({"model": 7})"), "model", ErrorCode::kWrongType, "7"},
      {"model_unknown", patched(R"({"model": "llama-3.1-71b"})"), "model", ErrorCode::kNotFound,
       "llama-3.1-70b"},
      {"model_no_layers", patched(R"({"model": {"layers": null}})"), "model",
       ErrorCode::kMissingKey, "layers"},
      {"no_cluster", patched(R"({"cluster": null})"), "cluster", ErrorCode::kMissingKey,
       "required"},
      {"cluster_number", patched(R"({"cluster": 7})"), "cluster", ErrorCode::kWrongType, "7"},
      {"cluster_unknown", patched(R"({"cluster": {"base": "dgx-h1000"}})"), "cluster.base",
       ErrorCode::kNotFound, "dgx-h100"},
      {"cluster_bare_rate", patched(R"({"cluster": {"nic": 400}})"), "cluster.nic",
       ErrorCode::kBadUnit, "no unit"},
      {"cluster_nodes_negative", patched(R"({"cluster": {"nodes": -1}})"), "cluster.nodes",
       ErrorCode::kBadValue, "out of range"},
      {"no_training", patched(R"({"training": null})"), "training", ErrorCode::kMissingKey,
       "required"},
      {"profile_number", patched(R"({"profile": 1})"), "profile", ErrorCode::kWrongType,
       "must be text"},
  };
}

inline std::vector<BadScenario> bad_training() {
  const auto bad = [](const char* name, const char* patch, const char* key, ErrorCode code,
                      const char* words) {
    return BadScenario{name, patched(patch), std::string("training.") + key, code, words};
  };
  using enum ErrorCode;
  return {
      bad("no_global_batch", R"({"training": {"global_batch": null}})", "global_batch", kMissingKey,
          "required"),
      bad("global_batch_text", R"({"training": {"global_batch": "128"}})", "global_batch",
          kWrongType, "whole number, not"),
      bad("global_batch_zero", R"({"training": {"global_batch": 0}})", "global_batch", kBadValue,
          "out of range"),
      bad("global_batch_fraction", R"({"training": {"global_batch": 128.5}})", "global_batch",
          kWrongType, "whole number"),
      bad("global_batch_huge", R"({"training": {"global_batch": 1e300}})", "global_batch",
          kWrongType, "63 bits"),
      bad("global_batch_larger_than_63_bits",
          R"({"training": {"global_batch": 18446744073709551615}})", "global_batch", kWrongType,
          "63 bits"),
      bad("global_batch_not_divisible", R"({"training": {"global_batch": 130}})", "global_batch",
          kIllegal, "use 128 or 132"),
      bad("global_batch_below_one_micro_batch", R"({"training": {"global_batch": 3}})",
          "global_batch", kIllegal, "use 4"),
      bad("sequence_zero", R"({"training": {"sequence_length": 0}})", "sequence_length", kBadValue,
          "out of range"),
      bad("sequence_not_divisible", R"({"training": {"sequence_length": 4098}})", "sequence_length",
          kIllegal, "use 4096 or 4100"),
      bad("sequence_beyond_learned_positions",
          R"({"model": {"position": "learned"}, "training": {"sequence_length": 16384}})",
          "sequence_length", kIllegal, "8192 learned positions"),
      bad("precision_unknown", R"({"training": {"precision": "bf61"}})", "precision", kBadValue,
          "did you mean 'bf16'?"),
      bad("fp8_on_ampere",
          R"({"cluster": {"base": "dgx-a100-80g"}, "training": {"precision": "fp8"}})", "precision",
          kIllegal, "has no fp8 arithmetic"),
      bad("fp8_in_pieces_on_hopper", R"({"training": {"precision": "fp8", "fp8_recipe": "mxfp8"}})",
          "fp8_recipe", kIllegal, "needs Blackwell or CDNA 4"),
      bad("fp8_in_pieces_on_cdna_3",
          R"({"cluster": {"base": "mi325x"},
              "training": {"precision": "fp8", "fp8_recipe": "mxfp8"}})",
          "fp8_recipe", kIllegal, "needs Blackwell or CDNA 4"),
      bad("fp4_of_nvidia_on_cdna_4",
          R"({"cluster": {"base": "mi355x"}, "training": {"precision": "fp4"}})", "precision",
          kIllegal, "no scales for pieces of 16 elements"),
      bad("fp4_on_cdna_3", R"({"cluster": {"base": "mi325x"}, "training": {"precision": "fp4"}})",
          "precision", kIllegal, "has no fp4 arithmetic"),
      bad("fp8_attention_of_blocks",
          R"({"training": {"precision": "fp8", "fp8_recipe": "blockwise", "fp8_attention": true}})",
          "fp8_attention", kIllegal, "blockwise"),
      bad("fp8_head_by_tensor", R"({"training": {"precision": "fp8", "fp8_head": true}})",
          "fp8_head", kIllegal, "recipe mxfp8"),
      bad("fp8_activation_input_of_gelu",
          R"({"model": {"mlp": "gelu"}, "training": {"fp8_activation_input": true}})",
          "fp8_activation_input", kIllegal, "only SwiGLU"),
      bad("fp8_recipe_without_fp8", R"({"training": {"fp8_recipe": "delayed"}})", "fp8_recipe",
          kIllegal, "precision bf16"),
      bad("attention_unknown", R"({"training": {"attention": "flesh"}})", "attention", kBadValue,
          "did you mean 'flash'?"),
      bad("optimizer_unknown", R"({"training": {"optimizer": "adam"}})", "optimizer", kBadValue,
          "adamw"),
      bad("bf16_weights_of_megatron", R"({"training": {"master_precision": "bf16"}})",
          "master_precision", kIllegal, "framework fsdp"),
      bad("early_stop_of_megatron", R"({"training": {"early_stop": true}})", "early_stop", kIllegal,
          "framework fsdp"),
      bad("deviation_without_documents", R"({"training": {"document_deviation": 10}})",
          "document_deviation", kIllegal, "document_length"),
      bad("documents_above_the_sequence", R"({"training": {"document_length": 5000}})",
          "document_length", kIllegal, "4096 or less"),
      bad("documents_in_unfused_attention",
          R"({"training": {"document_length": 50, "attention": "unfused"}})", "document_length",
          kIllegal, "attention flash"),
      bad("framework_unknown", R"({"training": {"framework": "megatrom"}})", "framework", kBadValue,
          "did you mean 'megatron'?"),
      bad("gradients_fp8", R"({"training": {"grad_precision": "fp8"}})", "grad_precision",
          kBadValue, "bf16, fp16 or fp32"),
      bad("gradients_of_another_half", R"({"training": {"grad_precision": "fp16"}})",
          "grad_precision", kIllegal, "bf16 or fp32"),
      bad("half_gradients_of_fp32",
          R"({"training": {"precision": "fp32", "grad_precision": "bf16"}})", "grad_precision",
          kIllegal, "fp32"),
      bad("reduction_in_another_half", R"({"training": {"reduce_precision": "fp16"}})",
          "reduce_precision", kIllegal, "bf16 or fp32"),
      bad("post_validation_under_1f1b", R"({"training": {"grad_clip": "post_validation"}})",
          "grad_clip", kIllegal, "zb-2p"),
      bad("no_sync_number", R"({"training": {"no_sync": 1}})", "no_sync", kWrongType,
          "must be true or false"),
      bad("no_sync_under_partitioned_gradients",
          R"({"training": {"framework": "deepspeed", "no_sync": true},
              "layout": {"zero": 2, "pp": 1}})",
          "no_sync", kIllegal, "partitions gradients"),
      bad("mode_unknown", R"({"training": {"mode": "dora"}})", "mode", kBadValue, "lora"),
      bad("lora_rank_zero", R"({"training": {"mode": "lora", "lora_rank": 0}})", "lora_rank",
          kBadValue, "out of range"),
      bad("lora_targets_unknown",
          R"({"training": {"mode": "lora", "lora_targets": ["up", "mlp"]}})", "lora_targets[0]",
          kBadValue, "some of qkv, attention_out or mlp"),
      bad("lora_targets_twice", R"({"training": {"mode": "lora", "lora_targets": ["mlp", "mlp"]}})",
          "lora_targets[1]", kBadValue, "keep one of them"),
      bad("lora_rank_alone", R"({"training": {"lora_rank": 16}})", "lora_rank", kIllegal,
          "training.mode=lora, or qlora"),
      bad("lora_dropout_alone", R"({"training": {"lora_dropout": 0.1}})", "lora_dropout", kIllegal,
          "has adapters"),
      bad("lora_dropout_above_one", R"({"training": {"mode": "lora", "lora_dropout": 2}})",
          "lora_dropout", kBadValue, "out of range"),
      bad("muon_of_native", R"({"training": {"framework": "native", "optimizer": "muon"}})",
          "optimizer", kIllegal, "megatron, fsdp or deepspeed"),
      bad("muon_mode_of_deepspeed", R"({"training": {"framework": "deepspeed", "optimizer": "muon",
                                        "muon_mode": "layer"}})",
          "muon_mode", kIllegal, "blockwise"),
      bad("small_optimizer", R"({"training": {"framework": "megatron", "optimizer": "adafactor"}})",
          "optimizer", kIllegal, "fsdp"),
      bad("wide_layers_of_bf16", R"({"training": {"last_layers_16_bits": 1}})", "last_layers_16_bits",
          kIllegal, "precision fp8 or fp4"),
      bad("unknown_key", R"({"training": {"global_batchs": 1}})", "global_batchs", kUnknownKey,
          "did you mean 'global_batch'?"),
  };
}

inline std::vector<BadScenario> bad_layouts() {
  const auto bad = [](const char* name, const char* patch, const char* key, ErrorCode code,
                      const char* words) {
    return BadScenario{name, patched(patch), std::string("layout.") + key, code, words};
  };
  using enum ErrorCode;
  return {
      bad("tp_text", R"({"layout": {"tp": "four"}})", "tp", kWrongType, "must be a whole number"),
      bad("tp_zero", R"({"layout": {"tp": 0}})", "tp", kBadValue, "out of range"),
      bad("tp_huge", R"({"layout": {"tp": 1099511627776}})", "tp", kBadValue, "1048576"),
      bad("tp_not_of_heads", R"({"layout": {"tp": 64, "pp": 1}})", "tp", kIllegal, "use 32"),
      bad("tp_not_of_gpus", R"({"model": {"heads": 48, "kv_heads": 48, "head_dim": 128,
                                          "ffn": 14400},
                                "layout": {"tp": 3, "pp": 1}})",
          "tp", kIllegal, "does not divide the 64 GPUs"),
      bad("pp_not_of_gpus", R"({"layout": {"pp": 3}})", "pp", kIllegal,
          "for the product use 8 or 16"),
      bad("more_ranks_than_gpus", R"({"cluster": {"nodes": 1}})", "tp", kIllegal, "use 8"),
      bad("tp_between_kv_heads", R"({"model": {"heads": 36, "kv_heads": 6, "head_dim": 128},
                                     "cluster": {"nodes": 9},
                                     "layout": {"tp": 9, "pp": 1}})",
          "tp", kIllegal, "6 key-value heads"),
      bad("tp_not_of_ffn", R"({"model": {"ffn": 14337}})", "tp", kIllegal, "14337"),
      bad("pp_huge", R"({"layout": {"pp": 1048576}})", "pp", kIllegal, "does not divide"),
      bad("dp_contradicts", R"({"layout": {"dp": 8}})", "dp", kIllegal, "use 4, or leave dp out"),
      bad("cp_of_unfused_attention",
          R"({"training": {"attention": "unfused"}, "layout": {"cp": 2}})", "cp", kNotSupported,
          "not supported yet"),
      bad("cp_method_unknown", R"({"layout": {"cp": 2, "cp_method": "all_to_al"}})", "cp_method",
          kBadValue, "did you mean 'all_to_all'?"),
      bad("cp_exchanges_more_than_heads", R"({"layout": {"cp": 4, "cp_method": "all_to_all"}})",
          "cp_method", kIllegal, "2 key-value heads"),
      bad("ep_without_experts", R"({"layout": {"ep": 2}})", "ep", kIllegal, "without experts"),
      bad("etp_without_experts", R"({"layout": {"etp": 2}})", "etp", kIllegal, "without experts"),
      bad("micro_batch_negative", R"({"layout": {"micro_batch": -2}})", "micro_batch", kBadValue,
          "out of range"),
      bad("more_stages_than_layers", R"({"model": {"layers": 3}})", "pp", kIllegal, "at most 3"),
      bad("schedule_unknown", R"({"layout": {"schedule": "1f1c"}})", "schedule", kBadValue,
          "did you mean '1f1b'?"),
      bad("dualpipe_without_pipeline", R"({"layout": {"schedule": "dualpipe", "pp": 1}})",
          "schedule", kIllegal, "pp is 1"),
      bad("dualpipe_with_sharded_gradients", R"({"layout": {"schedule": "dualpipe", "zero": 2}})",
          "zero", kNotSupported, "zero 2 under schedule dualpipe is not supported yet"),
      bad("schedule_of_a_file", R"({"layout": {"schedule": "file:order.csv"}})", "schedule",
          kIllegal, "cannot read 'order.csv'"),
      bad("schedule_of_no_file", R"({"layout": {"schedule": "file:"}})", "schedule", kBadValue,
          "file:PATH"),
      bad("interleaved_without_pipeline",
          R"({"layout": {"schedule": "interleaved", "pp": 1, "virtual_stages": 2}})", "schedule",
          kIllegal, "pp is 1"),
      bad("interleaved_with_one_chunk", R"({"layout": {"schedule": "interleaved"}})",
          "virtual_stages", kIllegal, "virtual_stages 2 or more"),
      bad("virtual_stages_under_1f1b", R"({"layout": {"virtual_stages": 2}})", "virtual_stages",
          kIllegal, "interleaved or looped-bfs"),
      bad("v_schedule_without_pipeline",
          R"({"layout": {"schedule": "1f1b-v", "pp": 1, "virtual_stages": 2}})", "schedule",
          kIllegal, "1f1b-v needs a pipeline, and pp is 1"),
      bad("v_schedule_with_three_chunks",
          R"({"layout": {"schedule": "v-half", "virtual_stages": 3}})", "virtual_stages", kIllegal,
          "3 where v-half has 2"),
      bad("auto_with_three_chunks", R"({"layout": {"schedule": "auto", "virtual_stages": 3}})",
          "virtual_stages", kIllegal, "3 where auto has 1 or 2"),
      bad("more_chunks_than_layers",
          R"({"layout": {"schedule": "interleaved", "virtual_stages": 16}})", "virtual_stages",
          kIllegal, "at most 8"),
      bad("zero_4", R"({"layout": {"zero": 4}})", "zero", kBadValue, "0 to 3"),
      bad("zero_1_of_fsdp",
          R"({"training": {"framework": "fsdp"}, "layout": {"zero": 1, "pp": 1}})", "zero",
          kIllegal, "fsdp"),
      bad("zero_3_in_deepspeed_pipeline",
          R"({"training": {"framework": "deepspeed"}, "layout": {"zero": 3}})", "zero", kIllegal,
          "pp = 4"),
      bad("sharded_table_of_a_folded_pipeline",
          R"({"model": {"tied_embeddings": true}, "training": {"framework": "fsdp"},
              "layout": {"schedule": "zb-v"}})",
          "schedule", kNotSupported, "a tied table"),
      bad("shard_group_not_of_dp", R"({"layout": {"shard_group": 3}})", "shard_group", kIllegal,
          "use 2 or 4"),
      bad("shard_group_word", R"({"layout": {"shard_group": "node"}})", "shard_group", kBadValue,
          "all"),
      bad("sequence_parallel_text", R"({"layout": {"sequence_parallel": "yes"}})",
          "sequence_parallel", kWrongType, "must be true or false"),
      bad("recompute_unknown", R"({"layout": {"recompute": "selectiv"}})", "recompute", kBadValue,
          "did you mean 'selective'?"),
      bad("recompute_unknown_module",
          R"({"layout": {"recompute": {"mode": "selective", "modules": ["core_atention"]}}})",
          "recompute.modules[0]", kBadValue, "did you mean 'core_attention'?"),
      bad("recompute_module_twice",
          R"({"layout": {"recompute": {"mode": "selective", "modules": ["mlp", "mlp"]}}})",
          "recompute.modules[1]", kBadValue, "keep one of them"),
      bad("recompute_module_of_another_framework",
          R"({"layout": {"recompute": {"mode": "selective", "modules": ["torchtitan_op"]}}})",
          "recompute.modules", kIllegal, "framework fsdp"),
      bad("recompute_operations_of_unfused_attention",
          R"({"training": {"framework": "fsdp", "attention": "unfused"},
              "layout": {"tp": 1, "pp": 1,
                         "recompute": {"mode": "selective", "modules": ["torchtitan_op"]}}})",
          "recompute.modules", kNotSupported, "unfused attention"),
      bad("recompute_modules_of_full",
          R"({"layout": {"recompute": {"mode": "full", "modules": ["mlp"]}}})", "recompute.modules",
          kIllegal, "selective"),
      bad("recompute_layers_of_none", R"({"layout": {"recompute": {"mode": "none", "layers": 2}}})",
          "recompute", kIllegal, "'none'"),
      bad("recompute_without_mode", R"({"layout": {"recompute": {"layers": 2}}})", "recompute.mode",
          kMissingKey, "required"),
      bad("recompute_more_than_layers",
          R"({"layout": {"recompute": {"mode": "full", "layers": 33}}})", "recompute.layers",
          kIllegal, "at most 32"),
      bad("order_incomplete", R"({"layout": {"order": "tp-dp-pp"}})", "order", kBadValue,
          "tp-cp-ep-dp-pp"),
      bad("order_repeated", R"({"layout": {"order": "tp-tp-cp-ep-dp-pp"}})", "order", kBadValue,
          "once each"),
      bad("overlap_not_an_object", R"({"layout": {"overlap": true}})", "overlap", kWrongType,
          "must be an object"),
      bad("overlap_unknown_key", R"({"layout": {"overlap": {"grads": true}}})", "overlap.grads",
          kUnknownKey, "grad_reduce"),
      bad("gather_overlap_alone", R"({"layout": {"overlap": {"param_gather": true}}})",
          "overlap.param_gather", kIllegal, "grad_reduce"),
      bad("gather_overlap_of_nothing",
          R"({"layout": {"zero": 0, "overlap": {"grad_reduce": true, "param_gather": true}}})",
          "overlap.param_gather", kIllegal, "zero 0"),
      bad("tp_overlap_without_sequence_parallel",
          R"({"layout": {"sequence_parallel": false, "overlap": {"tp": true}}})", "overlap.tp",
          kIllegal, "sequence_parallel"),
      bad("offload", R"({"training": {"optimizer": "muon"},
                         "layout": {"zero": 1, "offload": {"optimizer": 0.5}}})",
          "offload.optimizer", kIllegal, "stay on the device"),
      bad("muon_of_megatron_fsdp", R"({"training": {"framework": "megatron", "optimizer": "muon"},
                                       "layout": {"zero": 3}})",
          "zero", kIllegal, "zero 1 or less"),
      bad("muon_of_cut_shards", R"({"training": {"framework": "fsdp", "optimizer": "muon"},
                                    "layout": {"zero": 3, "tp": 2}})",
          "tp", kIllegal, "tp 1"),
      bad("muon_of_cut_experts",
          R"({"model": {"moe": {"experts": 8, "top_k": 2}},
              "training": {"framework": "fsdp", "optimizer": "muon"},
              "layout": {"zero": 3, "tp": 1, "pp": 1, "ep": 2, "etp": 2}})",
          "etp", kIllegal, "etp 1"),
      bad("offload_of_whole_states", R"({"layout": {"zero": 0, "offload": {"optimizer": 0.5}}})",
          "offload.optimizer", kIllegal, "zero 1 or more"),
      bad("offload_to_disks_unstated",
          R"({"training": {"framework": "deepspeed"}, "layout": {"pp": 1, "zero": 2,
              "offload": {"optimizer": 1, "optimizer_device": "nvme"}}})",
          "offload.optimizer_device", kIllegal, "disk_read"),
      bad("overlap_of_nothing_offloaded", R"({"layout": {"overlap": {"offload": true}}})",
          "overlap.offload", kIllegal, "nothing is offloaded"),
      bad("offload_above_one", R"({"layout": {"offload": {"parameters": 2}}})",
          "offload.parameters", kBadValue, "out of range"),
      bad("stage_layers_too_few", R"({"layout": {"stage_layers": [16, 16]}})", "stage_layers",
          kIllegal, "4 chunks"),
      bad("stage_layers_wrong_sum", R"({"layout": {"stage_layers": [8, 8, 8, 9]}})", "stage_layers",
          kIllegal, "sum to 33"),
      bad("stage_layers_hole", R"({"layout": {"stage_layers": [16, 0, 8, 8]}})", "stage_layers[1]",
          kIllegal, "end chunks"),
      bad("stage_layers_and_account",
          R"({"layout": {"stage_layers": [8, 8, 8, 8], "account_for_loss": true}})", "stage_layers",
          kIllegal, "account_for_loss"),
      bad("stage_layers_negative", R"({"layout": {"stage_layers": [8, -8, 8, 24]}})",
          "stage_layers[1]", kBadValue, "out of range"),
      bad("unknown_key", R"({"layout": {"tensor_parallel": 4}})", "tensor_parallel", kUnknownKey,
          ""),
      bad("not_an_object", R"({"layout": [1]})", "", kWrongType, "must be an object"),
  };
}

inline std::vector<BadScenario> bad_rest() {
  using enum ErrorCode;
  return {
      {"interleaved_partial_group", patched(R"({"training": {"global_batch": 120},
                   "layout": {"schedule": "interleaved", "virtual_stages": 2}})"),
       "training.global_batch", kIllegal, "use 112 or 128"},
      {"schedule_with_few_micro_batches",
       patched(
           R"({"training": {"global_batch": 8}, "layout": {"pp": 8, "schedule": "dualpipev"}})"),
       "training.global_batch", kIllegal, "32 or more"},
      {"dualpipe_with_an_odd_micro_batch", patched(R"({"training": {"global_batch": 68},
                   "layout": {"pp": 4, "schedule": "dualpipe"}})"),
       "training.global_batch", kIllegal, "as many for each end of the pipeline (dualpipe)"},
      {"dualpipe_on_odd_stages",
       patched(R"({"cluster": {"nodes": 3}, "training": {"global_batch": 96},
                   "layout": {"tp": 2, "pp": 3, "schedule": "dualpipe"}})"),
       "layout.pp", kIllegal, "use 2 or 4"},
      {"dualpipe_with_few_micro_batches", patched(R"({"training": {"global_batch": 24},
                   "layout": {"pp": 4, "schedule": "dualpipe"}})"),
       "training.global_batch", kIllegal, "32 or more"},
      {"experts_without_sequence_parallel",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "layout": {"sequence_parallel": false}})"),
       "layout.sequence_parallel", kNotSupported, "mixture of experts"},
      {"sharded_experts_of_deepspeed", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "training": {"framework": "deepspeed"},
                   "layout": {"ep": 2, "etp": 1, "pp": 1, "zero": 3}})"),
       "layout.ep", kIllegal, "ep 1, or zero 2"},
      {"experts_cut_unevenly", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2, "ffn": 30}},
                   "layout": {"etp": 4}})"),
       "layout.etp", kIllegal, "use 3 or 5"},
      {"graphs_of_routers_that_are_not_there", patched(R"({"training": {"cuda_graphs": "moe"}})"),
       "training.cuda_graphs", kIllegal, "without experts"},
      {"tokens_of_no_experts", patched(R"({"layout": {"overlap": {"ep": true}}})"),
       "layout.overlap.ep", kIllegal, "without experts"},
      {"tokens_beside_nothing", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "layout": {"ep": 2, "etp": 1, "overlap": {"ep": true}}})"),
       "layout.overlap.ep", kIllegal, "virtual_stages 2"},
      {"tokens_that_stay", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "layout": {"ep": 1, "overlap": {"ep": true}, "schedule": "interleaved",
                              "virtual_stages": 2}})"),
       "layout.overlap.ep", kIllegal, "ep 2 or more"},
      {"tokens_twice", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "layout": {"ep": 2, "etp": 1, "overlap": {"ep": true}, "virtual_stages": 2,
                              "schedule": "interleaved", "recompute": "full"}})"),
       "layout.overlap.ep", kIllegal, "recompute none"},
      {"weight_gradients_beside_nothing", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "layout": {"ep": 2, "etp": 1, "overlap": {"expert_wgrad": true}}})"),
       "layout.overlap.expert_wgrad", kIllegal, "overlap.ep true"},
      {"shared_experts_that_are_not_there",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2}},
                   "layout": {"ep": 2, "etp": 1, "overlap": {"shared_experts": true}}})"),
       "layout.overlap.shared_experts", kIllegal, "false"},
      {"shared_experts_beside_no_exchange",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2, "shared_experts": 1}},
                   "layout": {"ep": 1, "overlap": {"shared_experts": true}}})"),
       "layout.overlap.shared_experts", kIllegal, "ep 2 or more"},
      {"shared_experts_beside_deepep",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2, "shared_experts": 1,
                                     "dispatcher": "deepep"}},
                   "layout": {"ep": 2, "etp": 1, "overlap": {"shared_experts": true}}})"),
       "layout.overlap.shared_experts", kIllegal, "dispatcher alltoall"},
      {"room_beforehand_for_nccl", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2,
                                                    "rank_capacity_factor": 1.5}}})"),
       "model.moe.rank_capacity_factor", kBadValue, "dispatcher hybridep"},
      {"room_for_less_than_the_fullest",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2, "dispatcher": "hybridep",
                                     "imbalance": 2, "rank_capacity_factor": 1.5}}})"),
       "model.moe.rank_capacity_factor", kBadValue, "at least 2"},
      {"stash_above_the_room",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2, "dispatcher": "hybridep",
                                     "rank_capacity_factor": 1.25, "stash_factor": 1.5}}})"),
       "model.moe.stash_factor", kBadValue, "at most the rank_capacity_factor"},
      {"stash_that_nobody_fills",
       patched(R"({"model": {"moe": {"experts": 8, "top_k": 2, "dispatcher": "hybridep",
                                     "rank_capacity_factor": 1.5, "stash_factor": 1.25}}})"),
       "model.moe.stash_factor", kIllegal, "fused_mlp true"},
      {"fused_experts_in_16_bits", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2,
                                                    "fused_mlp": true}}})"),
       "model.moe.fused_mlp", kIllegal, "recipe mxfp8"},
      {"sms_of_nccl", patched(R"({"model": {"moe": {"experts": 8, "top_k": 2,
                                                    "dispatcher_sms": 8}}})"),
       "model.moe.dispatcher_sms", kBadValue, "deepep or hybridep"},
      {"window_of_ranks_that_share_sequences",
       patched(R"({"model": {"attention_window": 1024}, "layout": {"cp": 2}})"), "layout.cp_method",
       kIllegal, "all_gather or all_to_all"},
      {"run_deadline_without_unit", patched(R"({"run": {"deadline": 30}})"), "run.deadline",
       kBadUnit, "no unit"},
      {"run_tokens_negative", patched(R"({"run": {"tokens": -5}})"), "run.tokens", kBadValue,
       "out of range"},
      {"run_unknown_checkpoint_key", patched(R"({"run": {"checkpoint": {"size": "1 TB"}}})"),
       "run.checkpoint.size", kUnknownKey, "bytes"},
      {"run_unknown_key", patched(R"({"run": {"token": 5}})"), "run.token", kUnknownKey, "tokens"},
      {"run_bandwidth_zero", patched(R"({"run": {"checkpoint": {"bandwidth": "0 GB/s"}}})"),
       "run.checkpoint.bandwidth", kBadValue, "more than 0"},
      {"run_pue_below_one", patched(R"({"run": {"pue": 0.9}})"), "run.pue", kBadValue, "1 to 10"},
      {"run_stragglers_without_detection",
       patched(R"({"run": {"stragglers": {"per_node_day": 1, "slowdown": 0.3}}})"),
       "run.stragglers.detection", kMissingKey, ""},
      {"run_preemption_without_rate", patched(R"({"run": {"preemption": {"notice": "2 min"}}})"),
       "run.preemption.per_node_day", kMissingKey, ""},
      {"plan_objective", patched(R"({"plan": {"objective": "speed"}})"), "plan.objective",
       kBadValue, "step_time"},
      {"plan_clusters_number", patched(R"({"plan": {"clusters": [1]}})"), "plan.clusters[0]",
       kWrongType, "must be text"},
      {"plan_margin", patched(R"({"plan": {"memory_margin": 1.5}})"), "plan.memory_margin",
       kBadValue, "out of range"},
  };
}

// Islands and jobs of one cluster.
inline std::vector<BadScenario> bad_jobs() {
  const auto bad = [](const char* name, const char* patch, const char* path, ErrorCode code,
                      const char* words) {
    return BadScenario{name, patched(patch), path, code, words};
  };
  using enum ErrorCode;
  return {
      bad("other_jobs_without_nodes", R"({"other_jobs": [{"scenario": {"stepcast": 1}}]})",
          "other_jobs[0].nodes", kMissingKey, "missing"),
      bad("other_jobs_on_no_nodes", R"({"other_jobs": [{"nodes": "3-2", "scenario": {}}]})",
          "other_jobs[0].nodes", kBadValue, "ascending"),
      bad("other_jobs_on_one_node_twice", R"({"other_jobs": [{"nodes": "7-8", "scenario": {}}]})",
          "other_jobs[0].nodes", kIllegal, "not free"),
      bad("other_job_without_a_model",
          R"({"other_jobs": [{"nodes": "4-7", "scenario": {"stepcast": 1,
              "training": {"global_batch": 32}}}]})",
          "other_jobs[0].scenario.model", kMissingKey, "missing"),
      bad("outer_steps_of_megatron", R"({"training": {"framework": "megatron",
                                        "outer": {"islands": 2}}})",
          "training.outer.islands", kIllegal, "framework fsdp"),
      bad("outer_steps_without_islands", R"({"training": {"outer": {"every": 50}}})",
          "training.outer.every", kIllegal, "no islands"),
      bad("islands_of_unlike_size", R"({"training": {"outer": {"islands": 3}}})",
          "training.outer.islands", kIllegal, "8 nodes"),
      bad("islands_across_sites", R"({"cluster": {"nodes": 6, "sites": 3, "wan": "1 Gb/s",
                                                  "wan_latency": "1 ms"},
                                     "training": {"outer": {"islands": 2}}})",
          "training.outer.islands", kIllegal, "3 sites"),
      bad("outer_step_longer_than_its_period",
          R"({"training": {"outer": {"islands": 2, "every": 30, "fragments": 3,
                                     "overlap_steps": 11}}})",
          "training.outer.overlap_steps", kIllegal, "at most 10"),
      bad("more_fragments_than_layers",
          R"({"training": {"outer": {"islands": 2, "fragments": 33}}})", "training.outer.fragments",
          kIllegal, "at most 32"),
  };
}

inline std::vector<BadScenario> bad_scenarios() {
  std::vector<BadScenario> all;
  for (const auto& part : {bad_files(), bad_training(), bad_layouts(), bad_rest(), bad_jobs()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  // The root of an object's path carries no dot.
  for (BadScenario& bad : all) {
    if (bad.path.ends_with('.')) bad.path.pop_back();
  }
  return all;
}

}  // namespace stepcast::testing
