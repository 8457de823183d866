// SPDX-License-Identifier: Apache-2.0
// Seeded random scenarios that are legal, for one framework: every key is drawn, and what turns
// out to be illegal is drawn again.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "random_choice.h"
#include "scenario_from.h"

namespace stepcast::testing {

struct DrawnScenario {
  Scenario scenario;
  std::string text;
};

struct DrawnNodes {
  const char* base;
  std::int64_t gpus;  // of a node
};

// Scenarios are drawn from these; `forecasts`: all of them can be forecast.
struct DrawnFrom {
  std::vector<DrawnNodes> clusters = {{"dgx-h100", 8}, {"dgx-a100-80g", 8}};
  bool forecasts = false;
};

// Nodes of all kinds that ship: on switches, meshes and PCIe, with a NIC for each GPU, with several
// and with one for all, in racks, under one group of leaves and under several.
inline DrawnFrom all_that_forecasts() {
  return {{{"dgx-h100", 8},
           {"dgx-a100-80g", 8},
           {"dgx-b200", 8},
           {"dgx-h800", 8},
           {"gb200-nvl72", 4},
           {"gh200-alps", 4},
           {"a100-pcie-8", 8},
           {"aws-p4d", 8},
           {"aws-p5", 8},
           {"gcp-a3-mega", 8},
           {"meta-24k-roce", 8}},
          true};
}

class ScenarioDraw : Draws {
 public:
  explicit ScenarioDraw(std::uint32_t seed, DrawnFrom from = {})
      : Draws(seed), from_(std::move(from)) {}

  DrawnScenario draw(const std::string& framework) {
    const auto read = from_.forecasts ? read_scenario : read_legal_scenario;
    for (;;) {
      const SortedJson stated = candidate(framework);
      const auto document = JsonDocument::from(stated, "drawn.json");
      auto scenario = read(*document, source_folders());
      if (scenario) return {std::move(*scenario), json_text(stated)};
    }
  }

 private:
  SortedJson model() {
    const std::int64_t heads = pick({8, 16, 32});
    SortedJson out = {{"name", word({"alpha", "beta 2", "it's"})},
                      {"layers", pick({8, 12, 13, 16, 24})},
                      {"hidden", heads * pick({32, 64, 128})},
                      {"heads", heads},
                      {"kv_heads", heads / pick({1, 1, 2, 4})},
                      {"ffn", pick({1024, 2816, 8192})},
                      {"vocab", pick({1000, 32000, 50257, 128256})},
                      {"max_positions", pick({2048, 4096, 8192})},
                      {"mlp", word({"gelu", "swiglu"})},
                      {"norm", word({"layernorm", "rmsnorm"})},
                      {"position", word({"learned", "rope", "none"})},
                      {"tied_embeddings", chance(2)},
                      {"biases", chance(2)}};
    if (chance(2)) out["dropout"] = 0.1;
    if (chance(3)) out["qkv_bias"] = true;
    if (chance(4)) out["query_key_norm"] = true;
    if (chance(4)) out["vocab_multiple"] = pick({1, 64, 256});
    if (out["norm"] == "layernorm") out["norm_bias"] = true;
    if (out["biases"] == true) {
      out["qkv_bias"] = true;
      out["head_bias"] = false;
    }
    if (chance(4)) add_experts(out);
    if (!from_.forecasts) add_numerics(out);
    return out;
  }

  // They change no forecast.
  void add_numerics(SortedJson& model) {
    if (chance(2)) model["norm_epsilon"] = chance(2) ? 1e-5 : 1e-6;
    if (model["position"] != "rope" || chance(2)) return;
    model["rope_base"] = pick({10000, 500000});
    if (chance(2)) return;
    model["rope_scaling"] = word({"llama3", "yarn"});
    model["rope_factor"] = pick({8, 32});
  }

  void add_experts(SortedJson& model) {
    SortedJson moe = {{"experts", pick({8, 16})},
                      {"top_k", pick({1, 2})},
                      {"ffn", pick({512, 1024})},
                      {"dispatcher", from_.forecasts ? word({"alltoall", "allgather", "flex"})
                                                     : word({"alltoall", "allgather", "flex",
                                                             "deepep", "hybridep"})}};
    if (chance(2)) moe["dense_layers"] = pick({1, 3});
    if (chance(4)) moe["layer_every"] = 2;
    if (chance(3)) moe["shared_experts"] = pick({1, 2});
    if (chance(3)) moe["capacity_factor"] = 1.25;
    if (chance(3)) moe["imbalance"] = 1.5;
    if (chance(3)) moe["router_bias"] = true;
    model["moe"] = moe;
  }

  SortedJson recompute(const std::string& framework) {
    const bool titan = framework == "fsdp";
    switch (random_() % 6) {
      case 0:
        return "full";
      case 1:
        return titan ? SortedJson{{"mode", "full"}, {"every", pick({2, 3})}}
                     : SortedJson{{"mode", "full"}, {"layers", pick({1, 2})}};
      case 2:
        return titan ? SortedJson{{"mode", "selective"}, {"modules", {"torchtitan_op"}}}
                     : "selective";
      case 3:
        return titan ? SortedJson("none")
                     : SortedJson{{"mode", "selective"}, {"modules", {"layernorm", "mlp"}}};
      default:
        return "none";
    }
  }

  SortedJson layout(const std::string& framework, const SortedJson& model, std::int64_t gpus) {
    const std::int64_t tp = pick({1, 1, 2, 4, 8}), pp = pick({1, 1, 2, 3, 4});
    const bool twice = says_all(framework) && chance(6);  // exchanges inside rings
    const std::int64_t cp = twice ? 4 : pick({1, 1, 1, 2});
    SortedJson out = {{"tp", tp}, {"pp", pp}, {"cp", cp}, {"micro_batch", pick({1, 2, 4})}};
    if (chance(2)) out["dp"] = gpus / (tp * pp * cp);
    if (twice) {
      out["cp_method"] = "hierarchical";
    } else if (cp > 1 && says_all(framework)) {
      out["cp_method"] = word({"ring", "all_gather", "all_to_all"});
    } else if (cp > 1 && framework == "fsdp" && !from_.forecasts) {
      out["cp_method"] = word({"ring", "all_gather"});
    }
    if (chance(2) && pp > 1) {
      out["schedule"] = "interleaved";
      out["virtual_stages"] = pick({2, 3});
      if (framework == "deepspeed") out.erase("virtual_stages"), out.erase("schedule");
    } else if (chance(4) && framework == "fsdp") {
      out["schedule"] = "gpipe";
    }
    add_zero(framework, pp, out);
    if (chance(3)) out["sequence_parallel"] = chance(2);
    out["recompute"] = recompute(framework);
    if (chance(4)) out["order"] = word({"tp-cp-ep-pp-dp", "tp-pp-dp-cp-ep"});
    if (chance(2)) {
      out["overlap"] = {{"grad_reduce", chance(2)},
                        {"param_gather", chance(2)},
                        {"tp", chance(2)},
                        {"pp", chance(2)}};
    }
    if (chance(4)) {
      out["offload"] = {{"optimizer", framework == "megatron" && chance(2) ? 0.5 : 1.0}};
      if (framework == "fsdp") out["offload"]["parameters"] = 1;
      if (framework == "megatron") out["overlap"]["offload"] = chance(2);
    }
    add_chunks(model["layers"].get<std::int64_t>(), pp * out.value("virtual_stages", 1), out);
    if (model.contains("moe")) out["ep"] = pick({1, 2, 4});
    return out;
  }

  // Keys that Megatron's flags can say, of scenarios that need not be forecast.
  bool says_all(const std::string& framework) const {
    return framework == "megatron" && !from_.forecasts;
  }

  void add_zero(const std::string& framework, std::int64_t pp, SortedJson& out) {
    if (chance(3)) return;
    if (framework == "megatron") out["zero"] = pick({0, 1});
    if (framework == "deepspeed") out["zero"] = pp > 1 ? pick({0, 1}) : pick({0, 1, 2, 3});
    if (framework == "fsdp") out["zero"] = pick({2, 3});
    if (framework == "native") out["zero"] = pick({0, 1});
    const bool shards = framework != "deepspeed" || out["zero"] == 3;
    if (chance(4) && shards) out["shard_group"] = pick({1, 2, 4, 8});
  }

  void add_chunks(std::int64_t layers, std::int64_t chunks, SortedJson& out) {
    if (chunks == 1) return;
    if (chance(4)) {
      out["account_for_embedding"] = chance(2);
      out["account_for_loss"] = chance(2);
    } else if (chance(3) && layers > chunks) {
      std::vector<std::int64_t> list(static_cast<std::size_t>(chunks), layers / chunks);
      list[static_cast<std::size_t>(chunks) / 2] += layers % chunks;
      out["stage_layers"] = list;
    }
  }

  SortedJson training(const std::string& framework) {
    SortedJson out = {{"global_batch", pick({64, 96, 192, 384})},
                      {"sequence_length", pick({1024, 2048})},
                      {"framework", framework},
                      {"precision", framework == "fsdp" ? word({"bf16", "fp32"})
                                                        : word({"bf16", "fp16", "fp32"})}};
    if (says_all(framework) && chance(4)) {
      out["precision"] = "fp8";
      out["fp8_recipe"] = word({"delayed", "current", "blockwise", "mxfp8", "rowwise"});
      out["fp8_params"] = chance(2);
    }
    if (framework == "fsdp" && !from_.forecasts && chance(4)) {
      out["precision"] = "fp8";
      out["fp8_recipe"] = word({"delayed", "current", "mxfp8", "rowwise"});
      out["fp8_params"] = chance(3);
    }
    if (says_all(framework) && chance(4)) out["attention_kernel"] = word({"cudnn", "fa2"});
    if (says_all(framework) && chance(4)) out["moments_precision"] = "bf16";
    if (chance(3) && !out.contains("attention_kernel")) out["attention"] = "unfused";
    if (chance(3)) out["grad_precision"] = word({"fp32", "bf16"});
    if (chance(4)) out["reduce_precision"] = word({"fp32", "bf16"});
    if (chance(3)) out["grad_clip"] = word({"global", "none"});
    if (chance(3)) out["compile"] = chance(2);
    if (chance(5)) out["cuda_graphs"] = true;
    if (chance(5)) out["no_sync"] = true;
    if (chance(4)) out["bucket_elements"] = pick({1000000, 50000000});
    if (chance(5)) out["gather_bucket_elements"] = pick({2000000, 50000000});
    if (chance(5)) out["prefetch_units"] = 0;
    if (chance(5)) out["fused_gradient_accumulation"] = chance(2);
    if (chance(5)) out["scatter_gather_p2p"] = chance(2);
    if (chance(5)) out["host_sync_after_p2p"] = chance(2);
    if (chance(5)) out["host_sync_at_batch"] = chance(2);
    if (framework == "megatron" && chance(5)) {
      out["optimizer"] = "muon";
      if (chance(2)) {
        out["muon_mode"] = word({"duplicated", "distributed", "layer", "blockwise"});
      }
    }
    if (framework == "deepspeed" && chance(5)) out["optimizer"] = "muon";
    if (chance(6)) out["software"] = "a label";
    return out;
  }

  SortedJson candidate(const std::string& framework) {
    const std::int64_t nodes = pick({1, 2, 3, 6, 12});
    const SortedJson drawn = model();
    const DrawnNodes& node = from_.clusters[random_() % from_.clusters.size()];
    SortedJson out = {{"stepcast", 1},
                      {"model", drawn},
                      {"cluster", {{"base", node.base}, {"nodes", nodes}}},
                      {"training", training(framework)},
                      {"layout", layout(framework, drawn, nodes * node.gpus)}};
    if (chance(4)) out["profile"] = "none";
    if (chance(5)) out["run"] = {{"tokens", 1e12}};
    return out;
  }

  DrawnFrom from_;
};

}  // namespace stepcast::testing
