// SPDX-License-Identifier: Apache-2.0
#include "program/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "layout/choices.h"
#include "layout/fp8_recipe.h"
#include "layout/packed_documents.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "program/block_builder.h"
#include "program/expert_shape.h"
#include "program/layer_kind.h"
#include "program/sharded_units.h"

namespace stepcast {
namespace {

constexpr double kBf16Loss = 1e-2;
constexpr std::int64_t kFp8Multiple = 16;   // of all sizes of products
constexpr std::int64_t kLargestHead = 256;  // of the attention kernels for GPUs

class Checker {
 public:
  Checker(const Scenario& scenario, Backend backend)
      : scenario_(scenario),
        cuda_(backend == Backend::kCuda),
        refusal_(cuda_ ? "not run by the CUDA backend" : "not run by the CPU backend") {}

  Errors check() {
    check_types();
    if (scenario_.training.precision == DataType::kFp8) check_fp8();
    check_sums();
    check_model();
    check_layout();
    return std::move(errors_);
  }

 private:
  // "dropout is not run by the CPU backend"
  void refuse(const char* path, const std::string& what, const char* hint) {
    errors_.push_back({ErrorCode::kNotSupported, what + " " + refusal_, "", path, hint});
  }

  bool windowed() const {
    return std::ranges::any_of(layer_kinds(scenario_), &LayerKind::windowed);
  }

  void expect(const char* path, DataType type, std::initializer_list<DataType> known,
              const char* hint) {
    if (std::find(known.begin(), known.end(), type) != known.end()) return;
    refuse(path, fmt::format("{} is", name_of(type)), hint);
  }

  void check_types() {
    const Training& training = scenario_.training;
    if (training.outer.any()) {
      refuse("training.outer.islands", "training in islands is", "validate one of them");
    }
    if (packs_documents(scenario_)) {
      refuse("training.document_length", "packing documents is", "leave it out");
    }
    if (scenario_.layout.mtp_apart) {
      refuse("layout.mtp_apart", "a chunk of prediction modules is", "use false");
    }
    if (training.loss_chunks > 1) refuse("training.loss_chunks", "a loss in parts is", "use 1");
    if (training.optimizer != Optimizer::kAdamW) {
      refuse("training.optimizer", fmt::format("{} is", name_of(training.optimizer)), "use adamw");
    }
    if (training.trains_adapters()) {
      refuse("training.mode", fmt::format("{} is", name_of(training.mode)), "use pretrain");
    }
    if (!cuda_) {
      expect("training.precision", training.precision, {DataType::kFp32, DataType::kFp8},
             "use fp32 or fp8");
      expect("training.grad_precision", training.grad_precision, {DataType::kFp32}, "use fp32");
      expect("training.reduce_precision", training.reduce_precision, {DataType::kFp32}, "use fp32");
    }
    expect("training.moments_precision", training.moments_precision, {DataType::kFp32}, "use fp32");
    expect("training.master_precision", training.master_precision, {DataType::kFp32}, "use fp32");
    if (!cuda_) return;
    const auto known = {DataType::kFp32, DataType::kBf16};
    // fp16 needs a scale of the loss that follows its overflows, which no program has.
    expect("training.precision", training.precision,
           {DataType::kFp32, DataType::kBf16, DataType::kFp8}, "use bf16, fp32 or fp8");
    expect("training.grad_precision", training.grad_precision, known, "use fp32 or bf16");
    if (scenario_.rules.casts_to_reduce) {
      expect("training.reduce_precision", training.reduce_precision, known, "use fp32 or bf16");
    } else if (training.reduce_precision != training.grad_precision) {
      refuse("training.reduce_precision",
             fmt::format("{} of gradients kept in {} is", name_of(training.reduce_precision),
                         name_of(training.grad_precision)),
             "use the type of grad_precision, or framework fsdp");
    }
  }

  // Products in fp8 with one scale for a tensor.
  void check_fp8() {
    const Training& training = scenario_.training;
    const Model& model = scenario_.model;
    const Fp8Recipe& recipe = *fp8_of(scenario_).recipe;
    if (!cuda_ && training.wide() != DataType::kFp32) {
      refuse("training.precision", fmt::format("fp8 beside {} is", name_of(training.wide())),
             "cluster local, where fp8 is emulated beside fp32");
    }
    if (recipe.scales_by_direction) {
      refuse("training.fp8_recipe", fmt::format("recipe {} is", recipe.name),
             "use current or delayed");
    }
    if (training.fp8_params) {
      refuse("training.fp8_params", "holding parameters in fp8 is", "state false");
    }
    if (training.fp8_attention) {
      refuse("training.fp8_attention", "attention in fp8 is", "state false");
    }
    if (model.moe) refuse("model.moe", "products of experts in fp8 are", "use bf16 or fp32");
    if (model.mla) refuse("model.mla", "latent attention in fp8 is", "use bf16 or fp32");
    if (model.mtp_layers > 0) {
      refuse("model.mtp_layers", "multi-token prediction in fp8 is", "use bf16 or fp32");
    }
    if (model.qkv_bias || model.mlp_bias) {
      refuse("model.biases", "a cast that sums the gradient of a bias is", "state false");
    }
    check_fp8_sizes();
  }

  // cuBLASLt's products, and gathers of parts of a tensor, take no others.
  void check_fp8_sizes() {
    const Shape shape(scenario_);
    for (const std::int64_t size :
         {shape.rows, shape.tokens, shape.hidden, shape.ffn, shape.heads * shape.head_dim,
          shape.kv_heads * shape.head_dim}) {
      if (size % kFp8Multiple == 0) continue;
      refuse("training.precision", fmt::format("a product in fp8 of size {} is", size),
             "tokens and widths of a rank in multiples of 16");
      return;
    }
  }

  // A product would write a gradient of 16 bits beside the wide ones that it is added to.
  void check_sums() {
    if (!cuda_ || !sums_wide_gradients(scenario_)) return;
    const Training& training = scenario_.training;
    if (size_of(training.reduce_precision) <= size_of(training.wide())) return;
    refuse("training.reduce_precision",
           fmt::format("summing {} gradients of micro-batches in {} is", name_of(training.wide()),
                       name_of(training.reduce_precision)),
           "the type of training");
  }

  void check_model() {
    const Model& model = scenario_.model;
    if (Shape(scenario_).dropout) refuse("model.dropout", "dropout is", "state dropout 0");
    if (model.position == Position::kAlibi) {
      refuse("model.position", "alibi is", "use learned, rope or none");
    }
    if (model.table_width() != model.hidden) {
      refuse("model.embedding_width", "an embedding of another width than the model is",
             "use another model");
    }
    if (model.moe) check_experts(*model.moe);
    check_attention();
    if (cuda_ && (model.head_dim > kLargestHead || model.head_dim % 2 != 0)) {
      refuse("model.head_dim", fmt::format("heads of {} elements are", model.head_dim),
             "an even number, at most 256");
    }
  }

  void check_attention() {
    const Model& model = scenario_.model;
    if (cuda_ && model.mla) refuse("model.mla", "latent attention is", "validate --backend cpu");
    if (model.mla && model.mla->qk_rope_head_dim % 2 != 0) {
      refuse("model.mla.qk_rope_head_dim", "turning an odd number of elements is",
             "an even number");
    }
    if (model.mla && scenario_.training.attention == AttentionKernel::kUnfused) {
      refuse("training.attention", "unfused latent attention is", "use flash");
    }
    if (model.attention_sinks > 0) check_sinks();
    if (!windowed()) return;
    if (scenario_.layout.cp > 1 && scenario_.layout.cp_method == ContextMethod::kAllGather) {
      refuse("layout.cp_method", "attention within a window over gathered keys is",
             "use all_to_all");
    }
    if (cuda_) {
      refuse("model.attention_window", "attention within a window below the sequence is",
             "validate --backend cpu");
    } else if (scenario_.training.attention == AttentionKernel::kUnfused) {
      refuse("training.attention", "unfused attention within a window is", "use flash");
    }
  }

  void check_sinks() {
    const Layout& layout = scenario_.layout;
    if (scenario_.training.attention == AttentionKernel::kUnfused) {
      refuse("training.attention", "unfused attention with sinks is", "use flash");
    }
    if (layout.cp > layout.cp_exchange) {
      refuse("layout.cp_method", "attention with sinks in parts is", "use all_to_all");
    }
  }

  void check_experts(const Moe& moe) {
    const Layout& layout = scenario_.layout;
    if (moe.shared_gate) {
      refuse("model.moe.shared_gate", "a gate of the shared expert is", "state false");
    }
    if (moe.capacity_factor > 0 && moe.capacity_factor < 1) {
      refuse("model.moe.capacity_factor", "a capacity that drops tokens is", "at least 1");
    }
    if (layout.ep == 1 && layout.etp == 1) return;
    if (moe.dispatcher != MoeDispatcher::kAllToAll) {
      refuse("model.moe.dispatcher", "a dispatcher of tokens instead of rows is", "use alltoall");
    }
    // The norm is summed over tp and pp alone, where nothing is sharded.
    const bool elsewhere = layout.ep > 1 || layout.etp != layout.tp;
    if (elsewhere && layout.zero == 0 && scenario_.training.grad_clip == GradClip::kGlobal) {
      refuse("layout.zero", "a gradient norm of experts on other ranks is",
             "use 1, or grad_clip none");
    }
    if (layout.ep > 1) check_spread();
  }

  // The executor spreads rows evenly over experts, or as unevenly as the model says.
  void check_spread() {
    const Shape shape(scenario_);
    const ExpertShape experts(scenario_, shape);
    const std::int64_t rest = experts.sent - experts.favoured_rows();
    const std::int64_t others = experts.experts - experts.local;
    const std::int64_t most = (rest + others - 1) / others;  // of an expert, from one rank
    if (experts.padded || experts.ranks * experts.local * most <= experts.received) return;
    refuse("training.sequence_length",
           fmt::format("spreading {} rows over {} experts is", experts.sent, experts.experts),
           "tokens of a rank x top_k a multiple of the experts");
  }

  void check_offload(const Offload& offload) {
    constexpr const char* kOptimizer = "layout.offload.optimizer";
    if (cuda_) return refuse(kOptimizer, "an update in host memory is", "validate --backend cpu");
    for (const auto& [key, device] :
         {std::pair("layout.offload.optimizer_device", offload.optimizer_device),
          std::pair("layout.offload.parameter_device", offload.parameter_device)}) {
      if (device == OffloadDevice::kNvme) refuse(key, "keeping states on disks is", "use cpu");
    }
    if (scenario_.model.moe && scenario_.model.moe->router_bias) {
      refuse(kOptimizer, "leaving the router's bias, which no AdamW updates, to the host is",
             "use 0, or model.moe.router_bias false");
    }
    const bool leaves = leaves_as_reduced(scenario_, AxisGroup::kData);
    if (scenario_.model.moe && leaves_as_reduced(scenario_, AxisGroup::kExpertData) != leaves) {
      refuse(kOptimizer, "summing some gradients in host memory and reducing others alone is",
             "use zero 1 or 3, or ep below the data parallel ranks");
    }
    if (!leaves) return;
    // These sums come behind the reduction over data ranks, when gradients have left.
    if (Shape(scenario_).sequence_parallel) {
      refuse(kOptimizer, "summing gradients in host memory over tensor ranks is",
             "use zero 1, or sequence_parallel false");
    }
    if (scenario_.shares_trained_table() && !ends_meet(scenario_.layout)) {
      refuse(kOptimizer, "summing gradients in host memory of a table that two stages share is",
             "use zero 1, or an untied table");
    }
  }

  void check_layout() {
    const Model& model = scenario_.model;
    const Layout& layout = scenario_.layout;
    if (model.kv_heads < layout.tp) {
      refuse("layout.tp",
             fmt::format("{} ranks for {} key-value heads are", layout.tp, model.kv_heads),
             "at most as many ranks as key-value heads");
    }
    if (model.wide_query_key_norm && layout.tp > 1) {
      refuse("layout.tp", "a norm over all heads that tp cuts is", "use tp 1");
    }
    if (scenario_.training.grad_clip == GradClip::kPostValidation) {
      refuse("training.grad_clip", "validation after the step is", "use global or none");
    }
    if (layout.offload.optimizer > 0) check_offload(layout.offload);
    if (layout.overlap.tp) {
      refuse("layout.overlap.tp", "products pipelined with their collectives are", "use false");
    }
  }

  const Scenario& scenario_;
  bool cuda_;
  const char* refusal_;
  Errors errors_;
};

}  // namespace

Errors check_executable(const Scenario& scenario, Backend backend) {
  return Checker(scenario, backend).check();
}

NumericsLimits numerics_limits(DataType precision) {
  if (precision == DataType::kFp32) return {};
  return {kBf16Loss, std::nullopt};
}

}  // namespace stepcast
