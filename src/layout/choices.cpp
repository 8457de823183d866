// SPDX-License-Identifier: Apache-2.0
#include "layout/choices.h"

#include <array>

#include "layout/framework.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr std::array kAttentions = {"flash", "unfused"};
constexpr std::array kGradClips = {"global", "post_validation", "none"};
constexpr std::array kTrainingModes = {"pretrain", "lora", "qlora"};
constexpr std::array kOptimizers = {"adamw", "muon", "adamw_8bit", "adafactor", "sgd"};
constexpr std::array kFp4Products = {"all", "mlp"};
constexpr std::array kOffloadDevices = {"cpu", "nvme"};
constexpr std::array kOuterPrecisions = {"fp32", "bf16", "fp4"};
constexpr std::array kMuonModes = {"duplicated", "distributed", "layer", "blockwise"};
constexpr std::array kCudaGraphs = {"false", "true", "full", "attention", "moe"};
constexpr std::array kContextMethods = {"ring", "all_gather", "all_to_all", "hierarchical"};
constexpr std::array kRecomputeModes = {"none", "selective", "full"};
constexpr std::array kRecomputedModules = {"core_attention", "mlp_act",     "mlp",
                                           "layernorm",      "moe_act",     "moe",
                                           "shared_experts", "mla_up_proj", "torchtitan_op"};
constexpr std::array kAdapterTargets = {"qkv", "attention_out", "mlp"};

template <class Table, class Enum>
const char* entry(const Table& table, Enum value) {
  return table[static_cast<std::size_t>(value)];
}

template <class Table>
std::vector<std::string> all(const Table& table) {
  return {table.begin(), table.end()};
}

}  // namespace

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const FrameworkTraits* framework : frameworks()) names.emplace_back(framework->name);
  return names;
}
std::vector<std::string> attention_names() { return all(kAttentions); }
std::vector<std::string> grad_clip_names() { return all(kGradClips); }
std::vector<std::string> training_mode_names() { return all(kTrainingModes); }
std::vector<std::string> optimizer_names() { return all(kOptimizers); }
std::vector<std::string> muon_mode_names() { return all(kMuonModes); }
std::vector<std::string> fp4_products_names() { return all(kFp4Products); }
std::vector<std::string> offload_device_names() { return all(kOffloadDevices); }
std::vector<std::string> outer_precision_names() { return all(kOuterPrecisions); }
std::vector<std::string> cuda_graph_names() { return all(kCudaGraphs); }
std::vector<std::string> recompute_mode_names() { return all(kRecomputeModes); }
std::vector<std::string> recomputed_module_names() { return all(kRecomputedModules); }
std::vector<std::string> adapter_target_names() { return all(kAdapterTargets); }
std::vector<std::string> context_method_names() { return all(kContextMethods); }
std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) {
    if (!schedule->from_file) names.emplace_back(schedule->name);
  }
  return names;
}

const char* name_of(AttentionKernel attention) { return entry(kAttentions, attention); }
const char* name_of(GradClip clip) { return entry(kGradClips, clip); }
const char* name_of(TrainingMode mode) { return entry(kTrainingModes, mode); }
const char* name_of(Optimizer optimizer) { return entry(kOptimizers, optimizer); }
const char* name_of(MuonMode mode) { return entry(kMuonModes, mode); }
const char* name_of(Fp4Products products) { return entry(kFp4Products, products); }
const char* name_of(OffloadDevice device) { return entry(kOffloadDevices, device); }
const char* name_of(OuterPrecision precision) { return entry(kOuterPrecisions, precision); }
const char* name_of(CudaGraphs graphs) { return entry(kCudaGraphs, graphs); }
const char* name_of(ContextMethod method) { return entry(kContextMethods, method); }
const char* name_of(RecomputedModule module) { return entry(kRecomputedModules, module); }
const char* name_of(AdapterTarget target) { return entry(kAdapterTargets, target); }
const char* name_of(RecomputeMode mode) { return entry(kRecomputeModes, mode); }

}  // namespace stepcast
