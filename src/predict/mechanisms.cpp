// SPDX-License-Identifier: Apache-2.0
#include "predict/mechanisms.h"

#include <fmt/format.h>

#include "cluster/cluster.h"
#include "layout/choices.h"
#include "layout/framework.h"
#include "layout/packed_documents.h"
#include "layout/pipeline.h"
#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// Attention outweighs the products from here on, and each next length is four times the last. One
// that no run had is a mechanism that nothing proves, and the further away the more of them.
constexpr std::int64_t kLongSequence = 16384;
constexpr std::int64_t kLongestSequence = std::int64_t{1} << 40;
constexpr std::int64_t kShortSequence = 512;  // the shortest of recorded runs

class Mechanisms {
 public:
  explicit Mechanisms(const Scenario& scenario)
      : scenario_(scenario), layout_(scenario.layout), grid_(scenario.layout) {}

  std::vector<std::string> list() {
    hardware();
    work();
    tensor_parallelism();
    context_parallelism();
    pipeline();
    data_parallelism();
    experts();
    return std::move(out_);
  }

 private:
  void add(bool used, std::string name) {
    if (used) out_.push_back(std::move(name));
  }
  // Each framework has code of its own for these, so its name goes before theirs.
  void add_own(bool used, const std::string& name) {
    if (used) out_.push_back(fmt::format("{}: {}", name_of(scenario_.training.framework), name));
  }

  bool leaves_domain(AxisGroup group) const {
    const auto members = grid_.members(group, RankId(0));
    const auto domain = [&](RankId rank) {
      return scenario_.cluster.domain_of(DeviceId(static_cast<std::int32_t>(rank.index())));
    };
    return !members.empty() && domain(members.front()) != domain(members.back());
  }

  void hardware() {
    const ClusterSpec& spec = scenario_.cluster.spec;
    add(true, "device " + spec.accelerator.name);
    add(traits_of(spec.accelerator.architecture).runs_rccl, "GPUs of AMD");
    const char* network = spec.network ? name_of(*spec.network) : "";
    add(spec.gpus > spec.gpus_per_domain(), fmt::format("network {}", network));
    add(scenario_.whole_cluster().spec.sites > 1, "links between sites");
    add(scenario_.training.outer.any(), "outer steps");
    add(!scenario_.other_jobs.empty(), "other jobs on the fabric");
    add(spec.nccl.is_newer,
        fmt::format("NCCL {}, forecast as 2.{}", spec.nccl.version, NcclSettings::kNewest));
  }

  void work() {
    const Training& training = scenario_.training;
    add_own(true, training.precision_name());
    const bool in_fp8 = is_scaled(training.precision);
    add(in_fp8 && !training.fp8_recipe.empty(), fmt::format("fp8 recipe {}", training.fp8_recipe));
    add(training.fp8_params, std::string("parameters in ") + name_of(training.precision));
    add(training.first_layers_16_bits + training.last_layers_16_bits > 0, "layers kept in 16 bits");
    add(training.fp4_products == Fp4Products::kMlp, "fp4 beside fp8");
    add(training.vboost, "power given to the cores");
    add(training.fp8_attention, "attention in fp8");
    add(training.fp8_head, "head in fp8");
    add(true, std::string(name_of(training.attention)) + " attention");
    add(training.sequence_length < kShortSequence,
        fmt::format("sequences of less than {} tokens", kShortSequence));
    for (std::int64_t length = kLongSequence; length <= kLongestSequence; length *= 4) {
      add(training.sequence_length >= length,
          fmt::format("sequences of {} tokens or more", length));
    }
    add_own(training.trains_adapters(), "adapters");
    add_own(training.optimizer != Optimizer::kAdamW, name_of(training.optimizer));
    const Recompute& again = layout_.recompute;
    const bool operations = again.modules.has(RecomputedModule::kOperations);
    add(operations, "recomputation of operations");
    add(again.mode != RecomputeMode::kNone && !operations,
        fmt::format("{} recomputation", name_of(again.mode)));
    add(again.layers > 0, "recomputation of some layers");
    add(layout_.offload.activations > 0, "offloaded activations");
    add_own(layout_.offload.optimizer > 0, "offloaded optimizer");
    add_own(layout_.offload.parameters > 0, "offloaded parameters");
    add(layout_.offload.optimizer_device == OffloadDevice::kNvme, "states on disks");
    add(training.cuda_graphs == CudaGraphs::kMoe, "routers launched as graphs");
  }

  void tensor_parallelism() {
    if (layout_.tp == 1) return;
    add_own(true, "tensor parallelism");
    add_own(layout_.overlap.tp, "overlapped tensor parallelism");
    add(leaves_domain(AxisGroup::kTensor), "tensor parallelism across the network");
  }

  void pipeline() {
    if (layout_.pp == 1) return;
    const bool folded =
        layout_.virtual_stages > 1 && pipeline_of(layout_).placement == Placement::kFolded;
    add_own(true, feeds_both_ends(layout_)     ? "pipeline fed at both ends"
                  : folded                     ? "folded pipeline"
                  : layout_.virtual_stages > 1 ? "interleaved pipeline"
                                               : "pipeline");
    add_own(splits_backward(scenario_.layout), "split backward");
  }

  void context_parallelism() {
    if (layout_.cp == 1) return;
    add_own(true, fmt::format("context parallelism, {}", name_of(layout_.cp_method)));
    add(leaves_domain(AxisGroup::kContext), "context parallelism across the network");
  }

  void data_parallelism() {
    if (size_of(AxisGroup::kData, layout_) == 1) return;
    add_own(true, fmt::format("ZeRO {}", layout_.zero));
    add_own(layout_.shard_group > 0, "states sharded inside groups");
    add_own(layout_.pp > 1 && layout_.zero >= 2, "gradients sharded on a pipeline");
    add_own(layout_.overlap.grad_reduce, "gradients reduced beside the backward");
    add_own(layout_.overlap.param_gather, "parameters gathered beside the forward");
    // Several groups then share the NICs of a node.
    const bool crosses = leaves_domain(AxisGroup::kData);
    add(crosses && layout_.tp < scenario_.cluster.spec.gpus_per_node,
        "data parallelism across the network, several of its ranks in a node");
  }

  void experts() {
    const Model& model = scenario_.model;
    add(model.mla.has_value(), "latent attention");
    add(model.mtp_layers > 0, "multi-token prediction");
    add(model.attention_window > 0 && model.attention_window < scenario_.training.sequence_length,
        "attention windows");
    add(packs_documents(scenario_), "documents packed into sequences");
    if (!model.moe) return;
    add_own(layout_.overlap.ep, "tokens exchanged beside another micro-batch");
    add_own(layout_.overlap.expert_wgrad, "weight gradients of experts beside an exchange");
    add_own(layout_.overlap.shared_experts, "shared experts beside exchanges");
    add_own(model.moe->rank_capacity_factor > 0, "buffers of experts sized beforehand");
    add_own(model.moe->fused_mlp, "products of experts that activate and cast");
    add_own(true, "mixture of experts");
    add(scenario_.training.cuda_graphs == CudaGraphs::kOff, "experts without CUDA graphs");
    add_own(layout_.ep > 1, "expert parallelism");
    add_own(layout_.ep > 1 && layout_.zero == 3, "experts sharded over their own ranks");
    // Exchanges beside another micro-batch load no link (docs/moe.md). All recorded runs that leave
    // a node have them, so this name stands for that as well.
    add(layout_.ep > 1 && leaves_domain(AxisGroup::kExpert),
        "expert parallelism across the network");
  }

  const Scenario& scenario_;
  const Layout& layout_;
  const RankGrid grid_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> mechanisms_of(const Scenario& scenario) {
  return Mechanisms(scenario).list();
}

}  // namespace stepcast
