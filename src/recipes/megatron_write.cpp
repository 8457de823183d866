// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cluster/gpu_architecture.h"
#include "core/text/escape.h"
#include "layout/choices.h"
#include "layout/framework.h"
#include "layout/framework_rules.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "recipes/launch_format.h"
#include "recipes/megatron.h"
#include "recipes/megatron_text.h"

namespace stepcast {
namespace {

class Block {
 public:
  explicit Block(std::string name) : block_{std::move(name), {}} {}
  void flag(const char* name) { block_.lines.emplace_back(name); }
  template <class Value>
  void value(const char* name, const Value& value) {
    block_.lines.push_back(fmt::format("{} {}", name, shell_word(fmt::format("{}", value))));
  }
  void flag_if(bool given, const char* name) {
    if (given) flag(name);
  }
  ArgumentBlock take() { return std::move(block_); }

 private:
  ArgumentBlock block_;
};

void add_counts(const Scenario& s, Block& block, std::string_view part) {
  for (const MegatronCount& count : megatron_counts()) {
    if (std::string_view(count.path).starts_with(part)) block.value(count.flag, count.of(s));
  }
}

const char* position_name(Position position) {
  return position == Position::kLearned ? "learned_absolute"
         : position == Position::kRope  ? "rope"
                                        : "none";
}

void add_experts(const Model& m, Block& block) {
  const Moe& moe = *m.moe;
  block.value("--num-experts", moe.experts);
  block.value("--moe-router-topk", moe.top_k);
  block.value("--moe-ffn-hidden-size", moe.ffn);
  if (moe.shared_ffn > 0) block.value("--moe-shared-expert-intermediate-size", moe.shared_ffn);
  block.flag_if(moe.shared_gate, "--moe-shared-expert-gate");
  std::vector<bool> pattern;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) pattern.push_back(m.is_moe_layer(layer));
  block.value("--moe-layer-freq", layer_pattern(pattern));
  block.flag_if(moe.router_bias, "--moe-router-enable-expert-bias");
  if (moe.router_bias) block.value("--moe-router-score-function", "sigmoid");
  if (moe.capacity_factor > 0) {
    block.value("--moe-expert-capacity-factor", moe.capacity_factor);
    block.flag("--moe-pad-expert-input-to-capacity");
  }
  constexpr const char* kDispatchers[] = {"alltoall", "allgather", "flex", "flex", "flex"};
  block.value("--moe-token-dispatcher-type", kDispatchers[static_cast<int>(moe.dispatcher)]);
  const bool hybrid = moe.dispatcher == MoeDispatcher::kHybridEp;
  if (hybrid || moe.dispatcher == MoeDispatcher::kDeepEp) {
    block.value("--moe-flex-dispatcher-backend", hybrid ? "hybridep" : "deepep");
  }
  if (moe.dispatcher_sms > 0) {
    block.value(hybrid ? "--moe-hybridep-num-sms" : "--moe-deepep-num-sms", moe.dispatcher_sms);
  }
  if (moe.rank_capacity_factor > 0) {
    block.value("--moe-expert-rank-capacity-factor", moe.rank_capacity_factor);
  }
  if (moe.stash_factor > 0) {
    block.flag("--moe-paged-stash");
    block.value("--moe-paged-stash-buffer-size-factor-cuda", moe.stash_factor);
  }
  block.flag_if(moe.fused_mlp, "--use-transformer-engine-op-fuser");
  block.flag("--moe-grouped-gemm");
}

void add_latent_attention(const Mla& mla, Block& block) {
  block.flag("--multi-latent-attention");
  if (mla.q_lora_rank > 0) block.value("--q-lora-rank", mla.q_lora_rank);
  block.value("--kv-lora-rank", mla.kv_lora_rank);
  block.value("--qk-head-dim", mla.qk_nope_head_dim);
  block.value("--qk-pos-emb-head-dim", mla.qk_rope_head_dim);
  block.value("--v-head-dim", mla.v_head_dim);
}

// Leaves what the model's source does not say to Megatron's defaults.
void add_numerics(const Model& m, Block& block) {
  if (m.norm_epsilon > 0) block.value("--norm-epsilon", m.norm_epsilon);
  if (m.position != Position::kRope) return;
  // The flag takes a whole number.
  if (m.rope_base > 0 && m.rope_base == std::floor(m.rope_base)) {
    block.value("--rotary-base", std::llround(m.rope_base));
  }
  if (m.rope_scaling == kLlamaScaling) {
    block.flag("--use-rope-scaling");
    block.value("--rope-scaling-factor", m.rope_factor);
  }
  // Latent attention alone has it: other attention takes rope of that name and no factor.
  if (m.rope_scaling == kYarn && m.mla) {
    block.value("--rope-type", kYarn);
    block.value("--rotary-scaling-factor", m.rope_factor);
  }
}

ArgumentBlock model_block(const Scenario& s) {
  const Model& m = s.model;
  Block block("MODEL_ARGS");
  add_counts(s, block, "model.");
  if (m.kv_heads != m.heads) {
    block.flag("--group-query-attention");
    block.value("--num-query-groups", m.kv_heads);
  }
  block.value("--kv-channels", m.head_dim);
  block.value("--ffn-hidden-size", m.ffn);
  block.flag_if(m.mlp == Mlp::kSwiglu, "--swiglu");
  block.value("--normalization", m.norm == Norm::kRmsNorm ? "RMSNorm" : "LayerNorm");
  block.value("--position-embedding-type", position_name(m.position));
  add_numerics(m, block);
  block.flag_if(!m.tied_embeddings, "--untie-embeddings-and-output-weights");
  block.flag_if(!m.mlp_bias, "--disable-bias-linear");
  block.flag_if(m.qkv_bias && !m.mlp_bias, "--add-qkv-bias");
  block.flag_if(m.query_key_norm, "--qk-layernorm");
  if (m.dropout >= 0) {
    block.value("--attention-dropout", m.dropout);
    block.value("--hidden-dropout", m.dropout);
  }
  if (m.vocab_multiple > 0) block.value("--make-vocab-size-divisible-by", m.vocab_multiple);
  if (m.mtp_layers > 0) block.value("--mtp-num-layers", m.mtp_layers);
  if (m.moe) add_experts(m, block);
  if (m.mla) add_latent_attention(*m.mla, block);
  return block.take();
}

// Chunks of equal length need no list: Megatron deals as stepcast does.
void add_pipeline(const Scenario& s, Block& block) {
  const Layout& l = s.layout;
  const std::int64_t chunks = l.pp * l.virtual_stages;
  const std::int64_t places =
      s.model.layers + (l.account_for_embedding ? 1 : 0) + (l.account_for_loss ? 1 : 0);
  if (chunks == 1) return;
  if (l.defer_head_wgrad > 0) {
    const bool all = l.defer_head_wgrad >= s.micro_batches();
    block.flag("--defer-embedding-wgrad-compute");
    block.value("--wgrad-deferral-limit", all ? 0 : l.defer_head_wgrad);
  }
  if (l.stage_layers.empty() && places % chunks == 0 && !l.mtp_apart) {
    block.flag_if(l.account_for_embedding, "--account-for-embedding-in-pipeline-split");
    block.flag_if(l.account_for_loss, "--account-for-loss-in-pipeline-split");
    if (l.virtual_stages > 1) {
      block.value("--num-layers-per-virtual-pipeline-stage", places / chunks);
    }
  } else {
    block.value("--pipeline-model-parallel-layout",
                layout_text(deal_layers(s.model.layers, l), s.model.mtp_layers, l.mtp_apart));
  }
  const bool interleaved = l.schedule == schedule_named("interleaved");
  block.flag_if(interleaved && !l.overlap.pp, "--no-overlap-p2p-communication");
  if (interleaved && l.micro_batch_group > 0) {
    block.value("--microbatch-group-size-per-virtual-pipeline-stage", l.micro_batch_group);
  }
}

void add_data_parallel(const Scenario& s, Block& block) {
  const Layout& l = s.layout;
  const FrameworkRules usual = rules_of(s.training, l);
  block.flag_if(l.zero >= 1, "--use-distributed-optimizer");
  if (l.zero >= 2) {
    block.flag("--use-megatron-fsdp");
    block.value("--data-parallel-sharding-strategy",
                l.zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  if (l.shard_group > 0 && l.dp * l.cp % l.shard_group == 0) {
    block.value("--num-distributed-optimizer-instances", l.dp * l.cp / l.shard_group);
  }
  block.flag_if(l.overlap.grad_reduce, "--overlap-grad-reduce");
  block.flag_if(l.overlap.param_gather, "--overlap-param-gather");
  const bool other = s.rules.bucket_elements != usual.bucket_elements;
  if (l.overlap.grad_reduce && other && s.rules.bucket_elements > 0) {
    block.value("--ddp-bucket-size", s.rules.bucket_elements);
  }
}

ArgumentBlock parallel_block(const Scenario& s) {
  const Layout& l = s.layout;
  Block block("PARALLEL_ARGS");
  for (const char* part : {"layout.tp", "layout.pp", "layout.cp"}) add_counts(s, block, part);
  if (l.cp > 1) {
    block.value("--cp-comm-type", kMegatronContext[static_cast<std::size_t>(l.cp_method)]);
    if (l.cp_method == ContextMethod::kHierarchical) {
      block.flag(fmt::format("--hierarchical-context-parallel-sizes {} {}", l.cp_exchange,
                             l.cp / l.cp_exchange)
                     .c_str());
    }
  }
  if (s.model.moe) {
    block.value("--expert-model-parallel-size", l.ep);
    block.value("--expert-tensor-parallel-size", l.etp);
  }
  block.flag_if(l.sequence_parallel, "--sequence-parallel");
  block.flag_if(l.order == "tp-cp-ep-pp-dp", "--use-tp-pp-dp-mapping");
  add_pipeline(s, block);
  add_data_parallel(s, block);
  block.flag_if(l.overlap.tp, "--tp-comm-overlap");
  block.flag_if(l.overlap.ep, "--overlap-moe-expert-parallel-comm");
  block.flag_if(l.overlap.expert_wgrad, "--delay-wgrad-compute");
  block.flag_if(l.overlap.shared_experts, "--moe-shared-expert-overlap");
  block.flag_if(l.tp > 1 && l.pp > 1 && !l.sequence_parallel && !s.rules.scatter_gather_p2p,
                "--no-scatter-gather-tensors-in-pipeline");
  const bool narrow = s.training.moments_precision != DataType::kFp32;
  block.flag_if(l.offload.optimizer > 0 || narrow, "--use-precision-aware-optimizer");
  if (narrow) {
    for (const char* moment : {"--exp-avg-dtype", "--exp-avg-sq-dtype"}) {
      block.value(moment, name_of(s.training.moments_precision));
    }
  }
  if (l.offload.optimizer > 0) {
    block.flag("--optimizer-cpu-offload");
    block.value("--optimizer-offload-fraction", l.offload.optimizer);
    block.flag_if(l.overlap.offload, "--overlap-cpu-optimizer-d2h-h2d");
  }
  if (l.offload.activations > 0) {
    block.value("--cpu-offloading-num-layers",
                std::llround(l.offload.activations * static_cast<double>(s.model.layers)));
  }
  return block.take();
}

void add_recompute(const Recompute& recompute, Block& block) {
  if (recompute.mode == RecomputeMode::kNone || recompute.every > 1) return;
  if (recompute.mode == RecomputeMode::kFull) {
    block.value("--recompute-granularity", "full");
    block.value("--recompute-method", recompute.layers > 0 ? "block" : "uniform");
    block.value("--recompute-num-layers", std::max<std::int64_t>(recompute.layers, 1));
    return;
  }
  std::string modules;
  for (const RecomputedModule module : recompute.modules.named) {
    const auto& known = megatron_modules();
    const auto found = std::ranges::find(known, module, &MegatronModule::stepcast);
    if (found == known.end()) return;
    modules += std::string(" ") + found->megatron;
  }
  if (recompute.layers > 0) return;
  block.value("--recompute-granularity", "selective");
  block.flag(("--recompute-modules" + modules).c_str());
}

void add_precision(const Training& t, Block& block) {
  // In fp8 the products alone are narrower.
  block.flag_if(t.wide() == DataType::kBf16, "--bf16");
  block.flag_if(t.precision == DataType::kFp16, "--fp16");
  if (t.wide() == DataType::kFp32) return;
  if (t.grad_precision == DataType::kFp32) {
    block.flag("--accumulate-allreduce-grads-in-fp32");
  } else if (t.wide() == DataType::kBf16) {
    block.flag("--grad-reduce-in-bf16");
  }
  block.flag_if(t.fp8_activation_input, "--activation-func-fp8-input-store");
  if (t.precision == DataType::kFp8) {
    block.value("--fp8-format", "hybrid");
    block.value("--fp8-recipe", t.fp8_recipe == "current" ? "tensorwise" : t.fp8_recipe);
    block.flag_if(t.fp8_params, "--fp8-param-gather");
    block.flag_if(t.fp8_head, "--fp8-output-proj");
  }
  if (t.precision == DataType::kFp4) {
    block.value("--fp4-format", "e2m1");
    block.value("--fp4-recipe", "nvfp4");
    block.flag_if(t.fp8_params, "--fp4-param-gather");
  }
  if (t.first_layers_16_bits + t.last_layers_16_bits > 0) {
    block.flag("--first-last-layers-bf16");
    block.value("--num-layers-at-start-in-bf16", t.first_layers_16_bits);
    block.value("--num-layers-at-end-in-bf16", t.last_layers_16_bits);
  }
}

void add_cuda_graphs(CudaGraphs graphs, Block& block) {
  if (graphs == CudaGraphs::kOff) return;
  block.value("--cuda-graph-impl", "local");
  if (graphs == CudaGraphs::kFull) block.value("--cuda-graph-scope", "full_iteration");
  if (graphs == CudaGraphs::kAttention) block.value("--cuda-graph-scope", "attn");
  if (graphs == CudaGraphs::kMoe) block.flag("--cuda-graph-scope moe_router moe_preprocess");
}

const char* attention_backend(const Training& t) {
  if (t.attention == AttentionKernel::kUnfused) return "unfused";
  return t.attention_kernel == kFusedKernel ? "fused" : "flash";
}

ArgumentBlock training_block(const Scenario& s) {
  const Training& t = s.training;
  Block block("TRAINING_ARGS");
  add_counts(s, block, "layout.micro_batch");
  add_counts(s, block, "training.");
  add_precision(t, block);
  block.value("--attention-backend", attention_backend(t));
  add_recompute(s.layout.recompute, block);
  block.value("--clip-grad", t.grad_clip == GradClip::kNone ? "0.0" : "1.0");
  block.flag_if(!s.rules.fused_gradient_accumulation, "--no-gradient-accumulation-fusion");
  block.flag_if(s.rules.fuses_loss, "--cross-entropy-loss-fusion");
  if (!t.compile) {
    for (const char* fusion : {"--no-bias-gelu-fusion", "--no-bias-swiglu-fusion",
                               "--no-bias-dropout-fusion", "--no-rope-fusion"}) {
      block.flag(fusion);
    }
  }
  add_cuda_graphs(t.cuda_graphs, block);
  const bool muon = t.optimizer == Optimizer::kMuon;
  const bool sgd = t.optimizer == Optimizer::kSgd;
  block.value("--optimizer", muon ? "muon" : sgd ? "sgd" : "adam");
  if (muon) {
    const bool at_homes = t.muon_mode == MuonMode::kLayer;
    block.value("--muon-tp-mode", at_homes ? "layer_sharded" : name_of(t.muon_mode));
  }
  block.value("--lr", "1.0e-4");
  block.flag("--train-iters \"$TRAIN_ITERS\"");
  return block.take();
}

// NullTokenizer adds an end-of-document token of its own to the size it is given.
ArgumentBlock data_block(const Model& model) {
  Block block("DATA_ARGS");
  block.flag("--mock-data");
  block.value("--tokenizer-type", "NullTokenizer");
  block.value("--vocab-size", model.vocab - 1);
  return block.take();
}

// One hardware queue keeps the order in which kernels and transfers were issued, as tensor parallel
// transfers beside products need it. What Megatron-FSDP gathers and what experts exchange beside
// kernels of other micro-batches would wait in it, and Blackwell has no use for it
// (docs/frameworks.md).
int hardware_queues(const Scenario& s) {
  const ArchitectureTraits& device = traits_of(s.cluster.spec.accelerator.architecture);
  const bool is_one = device.has_one_queue && s.layout.zero < 2 && !s.layout.overlap.ep;
  return is_one ? 1 : 32;
}

}  // namespace

LaunchProgram megatron_program(const Scenario& scenario) {
  LaunchProgram program;
  program.variables = {
      fmt::format("export CUDA_DEVICE_MAX_CONNECTIONS={}", hardware_queues(scenario)),
      "MEGATRON_PATH=\"${MEGATRON_PATH:-.}\"  # a checkout of NVIDIA/Megatron-LM",
      "TRAIN_ITERS=\"${TRAIN_ITERS:-20}\""};
  program.words = "\"$MEGATRON_PATH/pretrain_gpt.py\"";
  program.blocks = {model_block(scenario), parallel_block(scenario), training_block(scenario),
                    data_block(scenario.model)};
  return program;
}

namespace {

Result<std::string> write_script(const Scenario& scenario, Launcher launcher,
                                 const std::vector<Setting>& remarks, const DataFolders&) {
  return launch_script(scenario, megatron_program(scenario), launcher, remarks);
}

}  // namespace

extern const LaunchFormat kMegatronScript = {
    .name = "megatron",
    .program = "Megatron-LM",
    .framework = "megatron",
    .read = read_megatron,
    .check = check_megatron,
    .script_file = "megatron.sh",
    .write = write_script,
    .left_to_program =
        [](const Scenario&) {
          return std::vector<std::string>{"training.no_sync", "training.software"};
        },
};

}  // namespace stepcast
