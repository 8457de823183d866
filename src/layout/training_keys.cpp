// SPDX-License-Identifier: Apache-2.0
// The keys of the object `training`, one row each, in the order in which they are read and settled.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/data_name.h"
#include "core/json_tree.h"
#include "layout/choices.h"
#include "layout/fp8_recipe.h"
#include "layout/framework.h"
#include "layout/key_types.h"
#include "layout/packed_documents.h"
#include "layout/scenario.h"
#include "layout/training_values.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr std::int64_t kDefaultSequenceLimit = 4096;
constexpr std::int64_t kLoraRank = 16;  // between PEFT's default 8 and the QLoRA paper's 64

constexpr std::size_t kAccumulatedPrecisions = 3;  // gradients are never fp8 or TF32

template <std::size_t accepted>
std::vector<std::string> precision_names() {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < accepted; ++i) out.emplace_back(name_of(kPrecisions[i]));
  return out;
}

// A recipe of fp8 in the place of a type, as people name them: "mxfp8". Says where it belongs.
bool is_recipe(ObjectReader& object, const char* key) {
  const auto value = object.value(key);
  if (!value || !value->raw().is_string()) return false;
  const std::string& word = value->raw().get_text();
  const auto found = std::ranges::find(fp8_recipes(), word, &Fp8Recipe::name);
  if (found == fp8_recipes().end()) return false;
  object.fail(key, ErrorCode::kBadValue, fmt::format("'{}' is a recipe of fp8", word),
              fmt::format("fp8, with training.fp8_recipe {}", word));
  return true;
}

template <auto member, std::size_t accepted>
constexpr KeyType kPrecision = {
    [](ObjectReader& object, const char* key, Settings& out) {
      const auto found = object.choice(key, precision_names<accepted>());
      if (found) field(out, member) = kPrecisions[*found];
      return found.has_value();
    },
    write_name<member>, copy_field<member>, [] { return one_of(precision_names<accepted>()); }};

// fp4 has two forms: NVIDIA's, which is meant by the type alone, and MX.
constexpr const char* kNvfp4 = "nvfp4";

std::vector<std::string> product_precisions() {
  std::vector<std::string> out = precision_names<kPrecisions.size()>();
  out.insert(out.end(), {kNvfp4, kMxfp4});
  return out;
}

bool read_product_precision(ObjectReader& object, const char* key, Settings& out) {
  if (is_recipe(object, key)) return false;
  const auto found = object.choice(key, product_precisions());
  if (!found) return false;
  const bool fp4 = *found >= kPrecisions.size();
  out.training.precision = fp4 ? DataType::kFp4 : kPrecisions[*found];
  out.training.mxfp4 = *found > kPrecisions.size();
  return true;
}
void write_product_precision(const Settings& settings, SortedJson& out) {
  out = settings.training.precision_name();
}
void copy_product_precision(const Settings& from, Settings& to) {
  to.training.precision = from.training.precision;
  to.training.mxfp4 = from.training.mxfp4;
}
constexpr KeyType kProductPrecision = {read_product_precision, write_product_precision,
                                       copy_product_precision,
                                       [] { return one_of(product_precisions()); }};

std::vector<std::string> state_precisions() { return {"fp32", "bf16"}; }
template <auto member>
constexpr KeyType kStatePrecision = {
    [](ObjectReader& object, const char* key, Settings& out) {
      const auto found = object.choice(key, state_precisions());
      if (found) field(out, member) = *found == 0 ? DataType::kFp32 : DataType::kBf16;
      return found.has_value();
    },
    write_name<member>, copy_field<member>, [] { return one_of(state_precisions()); }};

bool read_global_batch(ObjectReader& object, const char* key, Settings& out) {
  out.training.global_batch = object.required_integer(key, 1, std::int64_t{1} << 32);
  return out.training.global_batch > 0;
}
constexpr KeyType kGlobalBatch = {read_global_batch, write_field<&Training::global_batch>,
                                  copy_field<&Training::global_batch>,
                                  [] { return std::string("1 or more"); }};

// A trainer's name is no framework's, and the error says whose way it goes.
bool read_framework(ObjectReader& object, const char* key, Settings& out) {
  const auto value = object.value(key);
  if (!value) return false;
  const std::string name = value->is_text() ? *value->text() : "";
  for (const FrameworkTraits* traits : frameworks()) {
    if (std::ranges::find(traits->trainers, plain_name(name)) == traits->trainers.end()) continue;
    value->fail(ErrorCode::kBadValue, fmt::format("'{}' is a trainer", name),
                fmt::format("it runs steps as '{}' does", traits->name));
    return false;
  }
  const auto found = object.choice(key, framework_names());
  if (found) out.training.framework = static_cast<Framework>(*found);
  return found.has_value();
}
constexpr KeyType kFramework = {read_framework, write_name<&Training::framework>,
                                copy_field<&Training::framework>,
                                [] { return one_of(framework_names()); }};

std::vector<std::string> fp8_recipe_names() {
  std::vector<std::string> names;
  for (const Fp8Recipe& recipe : fp8_recipes()) names.emplace_back(recipe.name);
  return names;
}
std::vector<std::string> attention_kernels() {
  return {"unfused", "triton", "fa1", "fa2", "fa3", "cudnn"};
}

void settle_sequence_length(Scenario& s, bool stated) {
  if (stated) return;
  s.training.sequence_length = std::min(s.model.max_positions, kDefaultSequenceLimit);
}

void settle_framework(Scenario& s, bool stated) {
  if (!stated) s.training.framework = default_framework(s.training, s.layout);
}

// "megatron; fsdp when zero is 3 and tp = pp = 1"
std::string default_framework_words() {
  std::string out = name_of(Framework{});
  for (const FrameworkTraits* framework : frameworks()) {
    if (framework->default_for == nullptr) continue;
    out += fmt::format("; {} when {}", framework->name, framework->default_when);
  }
  return out;
}

void settle_fp8_recipe(Scenario& s, bool stated) {
  const bool has_16_bits = s.cluster.spec.accelerator.architecture != GpuArchitecture::kCpu;
  s.training.beside_scaled = has_16_bits ? DataType::kBf16 : DataType::kFp32;
  if (stated || s.training.precision != DataType::kFp8) return;
  s.training.fp8_recipe = traits_of(s.training.framework).fp8_recipe;
}

bool has_narrow_weights(const Scenario& s) {
  return s.training.master_precision != DataType::kFp32;
}

void settle_document_deviation(Scenario& s, bool stated) {
  if (!stated) s.training.document_deviation = s.training.document_length;
}

// PyTorch's states are of the type of their parameters.
DataType usual_moments(const Training& training) {
  const bool has_moments =
      training.optimizer == Optimizer::kAdamW || training.optimizer == Optimizer::kMuon;
  return has_moments ? training.master_precision : DataType::kFp32;
}

void settle_moments_precision(Scenario& s, bool stated) {
  if (!stated) s.training.moments_precision = usual_moments(s.training);
}

void settle_grad_precision(Scenario& s, bool stated) {
  if (stated) return;
  if (has_narrow_weights(s)) {  // autograd's gradients are of the type of their parameters
    s.training.grad_precision = s.training.master_precision;
  } else if (traits_of(s.training.framework).gradients_fp32 ||
             s.training.wide() == DataType::kFp32) {
    s.training.grad_precision = DataType::kFp32;
  } else {
    s.training.grad_precision = s.training.wide();
  }
}

void settle_reduce_precision(Scenario& s, bool stated) {
  if (!stated) s.training.reduce_precision = s.training.grad_precision;
}

void settle_grad_clip(Scenario& s, bool stated) {
  const bool later = rules_of(s.layout.schedule).validates_after_step &&
                     traits_of(s.training.framework).validates_after_step;
  if (!stated && later) s.training.grad_clip = GradClip::kPostValidation;
}

std::string grad_clip_words() {
  return fmt::format("{}; {} where the schedule validates after the step ({})",
                     name_of(GradClip::kGlobal), name_of(GradClip::kPostValidation),
                     frameworks_with(&FrameworkTraits::validates_after_step));
}

// Kernels that keep the scores on the chip came to frameworks at some time. A stated kernel says
// which kind it is.
void settle_attention(Scenario& s, bool stated) {
  if (stated) return;
  if (!s.training.attention_kernel.empty()) {
    const bool unfused = s.training.attention_kernel == name_of(AttentionKernel::kUnfused);
    s.training.attention = unfused ? AttentionKernel::kUnfused : AttentionKernel::kFlash;
    return;
  }
  const Release since = traits_of(s.training.framework).flash_attention_since;
  s.training.attention =
      s.training.release.has(since) ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
}

void settle_attention_kernel(Scenario& s, bool stated) {
  if (stated) return;
  if (s.training.attention == AttentionKernel::kUnfused) {
    s.training.attention_kernel = name_of(AttentionKernel::kUnfused);
    return;
  }
  const auto choose = traits_of(s.training.framework).attention_kernel;
  s.training.attention_kernel =
      choose == nullptr ? "" : choose(s.training.release, s.cluster.spec.accelerator.architecture);
}

void settle_compile(Scenario& s, bool stated) {
  if (!stated) s.training.compile = traits_of(s.training.framework).compile;
}

// A compiled graph drops what nobody reads.
void settle_early_stop(Scenario& s, bool stated) {
  if (stated) return;
  const FrameworkTraits& traits = traits_of(s.training.framework);
  const auto has = [&](const std::optional<Release>& since) {
    return since && s.training.release.has(*since);
  };
  s.training.early_stop = has(traits.checkpoint_stops_early_since) &&
                          (s.training.compile || !has(traits.checkpoint_runs_on_since));
}

void settle_muon_mode(Scenario& s, bool stated) {
  const FrameworkTraits& traits = traits_of(s.training.framework);
  if (!stated && !traits.muon_modes.empty()) s.training.muon_mode = traits.muon_modes.front();
}

std::string muon_mode_words() {
  std::string out = name_of(MuonMode::kDuplicated);
  for (const FrameworkTraits* framework : frameworks()) {
    const auto modes = framework->muon_modes;
    if (modes.empty() || modes.front() == MuonMode::kDuplicated) continue;
    out += fmt::format("; {} of {}", name_of(modes.front()), framework->name);
  }
  return out;
}

void settle_lora_rank(Scenario& s, bool stated) {
  if (!stated && s.training.trains_adapters()) s.training.lora_rank = kLoraRank;
}

bool trains_adapters(const Scenario& s) { return s.training.trains_adapters(); }
bool states_moments(const Scenario& s) {
  return s.training.moments_precision != usual_moments(s.training);
}
bool has_early_stop(const Scenario& s) {
  return traits_of(s.training.framework).checkpoint_stops_early_since.has_value();
}
bool has_muon(const Scenario& s) { return s.training.optimizer == Optimizer::kMuon; }
bool has_fp8_recipe(const Scenario& s) { return !s.training.fp8_recipe.empty(); }
bool has_fp8(const Scenario& s) { return is_scaled(s.training.precision); }
bool stores_fp8_inputs(const Scenario& s) {
  return traits_of(s.training.framework).stores_fp8_inputs && s.model.mlp == Mlp::kSwiglu;
}
bool cuts_loss(const Scenario& s) { return s.training.loss_chunks > 1; }
bool has_fp4(const Scenario& s) { return s.training.precision == DataType::kFp4; }
bool offloads_optimizer(const Scenario& s) { return s.layout.offload.optimizer > 0; }
bool has_attention_kernel(const Scenario& s) { return !s.training.attention_kernel.empty(); }
bool has_release(const Scenario& s) { return !s.training.release.newest(); }
bool gives_power(const Scenario& s) { return s.training.vboost; }
bool blocks_launches(const Scenario& s) { return s.training.launch_blocking; }
bool has_outer_steps(const Scenario& s) { return s.training.outer.islands > 0; }
bool has_software(const Scenario& s) { return !s.training.software.empty(); }

constexpr const char* kByFramework = "by framework";

constexpr Key kRows[] = {
    {.path = "training.global_batch",
     .type = &kGlobalBatch,
     .fallback = "required",
     .help = "sequences per optimizer step",
     .flag = {"--global-batch", "N"},
     .decides_the_run = true},
    {.path = "training.sequence_length",
     .type = &kTokens<&Training::sequence_length, 1, std::int64_t{1} << 22>,
     .fallback = "the model's maximum, at most 4096",
     .help = "tokens per sequence; at most the model's learned positions",
     .settle = settle_sequence_length,
     .flag = {"--seq", "N"},
     .decides_the_run = true},
    {.path = "training.document_length",
     .type = &kTokens<&Training::document_length, 1, std::int64_t{1} << 22>,
     .fallback = "no documents",
     .help = "mean tokens of documents packed into a sequence, each of which attends to itself",
     .shown = packs_documents},
    {.path = "training.document_deviation",
     .type = &kTokens<&Training::document_deviation, 0, std::int64_t{1} << 22>,
     .fallback = "document_length",
     .help = "standard deviation of the documents' lengths, which are log-normal",
     .settle = settle_document_deviation,
     .shown = packs_documents},
    {.path = "training.precision",
     .type = &kProductPrecision,
     .fallback = "bf16",
     .help = "number type of the matrix products; `fp4` is NVFP4",
     .flag = {"--precision", "TYPE", true},
     .decides_the_run = true},
    {.path = "training.optimizer",
     .type = &kChoice<&Training::optimizer, optimizer_names>,
     .fallback = "adamw",
     .help = "what updates the parameters; `muon`: the matrices of layers, and AdamW the rest",
     .decides_the_run = true},
    {.path = "training.framework",
     .type = &kFramework,
     .fallback = default_framework_words,
     .help = "whose defaults hold and whose way of running a step",
     .settle = settle_framework,
     .flag = {"--framework", "NAME", true},
     .made_of = {"layout.tp", "layout.pp", "layout.zero"}},
    {.path = "training.muon_mode",
     .type = &kChoice<&Training::muon_mode, muon_mode_names>,
     .fallback = muon_mode_words,
     .help = "with muon: a matrix that tp cuts is worked on whole by each tensor rank, in parts "
             "that are summed, by one home rank, or as if each rank's part were a matrix",
     .settle = settle_muon_mode,
     .shown = has_muon},
    {.path = "training.fp8_recipe",
     .type = &kWord<&Training::fp8_recipe, fp8_recipe_names>,
     .fallback = "with fp8: by framework",
     .help = "with precision fp8: how its scales are found",
     .settle = settle_fp8_recipe,
     .shown = has_fp8_recipe},
    {.path = "training.release",
     .type = &kReleaseMonth,
     .fallback = "the newest",
     .help = "month of the framework's code: defaults that changed over time follow it",
     .shown = has_release},
    {.path = "training.attention",
     .type = &kChoice<&Training::attention, attention_names>,
     .fallback = "flash; unfused before the framework had it",
     .help = "`unfused` writes the matrix of scores",
     .settle = settle_attention},
    {.path = "training.attention_kernel",
     .type = &kWord<&Training::attention_kernel, attention_kernels>,
     .fallback = "by framework, release and device",
     .help = "whose speed attention has: `triton`, FlashAttention 1 to 3, or cuDNN's",
     .settle = settle_attention_kernel,
     .shown = has_attention_kernel},
    {.path = "training.master_precision",
     .type = &kStatePrecision<&Training::master_precision>,
     .fallback = "fp32",
     .help =
         "weights that the optimizer updates; `bf16`: the parameters alone, without a copy in fp32",
     .shown = has_narrow_weights},
    {.path = "training.grad_precision",
     .type = &kPrecision<&Training::grad_precision, kAccumulatedPrecisions>,
     .fallback = kByFramework,
     .help = "gradients as they are stored and accumulated",
     .settle = settle_grad_precision},
    {.path = "training.reduce_precision",
     .type = &kPrecision<&Training::reduce_precision, kAccumulatedPrecisions>,
     .fallback = "grad_precision",
     .help = "gradients on the wire",
     .settle = settle_reduce_precision},
    {.path = "training.moments_precision",
     .type = &kStatePrecision<&Training::moments_precision>,
     .fallback = "master_precision",
     .help = "Adam's moments as they are stored",
     .settle = settle_moments_precision,
     .shown = states_moments},
    {.path = "training.grad_clip",
     .type = &kChoice<&Training::grad_clip, grad_clip_names>,
     .fallback = grad_clip_words,
     .help = "how gradients are clipped by their norm",
     .settle = settle_grad_clip},
    {.path = "training.no_sync",
     .type = &kTruth<&Training::no_sync>,
     .fallback = "false",
     .help = "gradients are reduced after the last micro-batch only"},
    {.path = "training.compile",
     .type = &kTruth<&Training::compile>,
     .fallback = kByFramework,
     .help = "elementwise chains run as fused kernels",
     .settle = settle_compile},
    {.path = "training.early_stop",
     .type = &kTruth<&Training::early_stop>,
     .fallback = kByFramework,
     .help = "recomputation ends where backward has all that it reads",
     .settle = settle_early_stop,
     .shown = has_early_stop},
    {.path = "training.cuda_graphs",
     .type = &kCudaGraphs,
     .fallback = "false",
     .help = "which kernels are launched as CUDA graphs; true: all"},
    {.path = "training.vboost",
     .type = &kTruth<&Training::vboost>,
     .fallback = "false",
     .help = "power of the memory is given to the cores (nvidia-smi boost-slider --vboost)",
     .shown = gives_power,
     .decides_the_run = true},
    {.path = "training.launch_blocking",
     .type = &kTruth<&Training::launch_blocking>,
     .fallback = "false",
     .help = "every launch waits until its kernel has ended (CUDA_LAUNCH_BLOCKING)",
     .shown = blocks_launches},
    {.path = "training.fp8_params",
     .type = &kTruth<&Training::fp8_params>,
     .fallback = "false",
     .help = "with precision fp8 or fp4: parameters are held and gathered in it",
     .shown = has_fp8},
    {.path = "training.fp8_attention",
     .type = &kTruth<&Training::fp8_attention>,
     .fallback = "false",
     .help = "with precision fp8: attention reads fp8 too",
     .shown = has_fp8},
    {.path = "training.fp8_head",
     .type = &kTruth<&Training::fp8_head>,
     .fallback = "false",
     .help = "with fp8_recipe mxfp8: products of the head read fp8 too",
     .shown = has_fp8},
    {.path = "training.fp8_activation_input",
     .type = &kTruth<&Training::fp8_activation_input>,
     .fallback = "false",
     .help = "what SwiGLU reads waits for the backward in fp8, in any precision",
     .shown = stores_fp8_inputs},
    {.path = "training.loss_chunks",
     .type = &kCount<&Training::loss_chunks, 1, 4096>,
     .fallback = "1",
     .help = "parts of a micro-batch's tokens, for each of which the head makes logits, loss and "
             "gradients by themselves (a linear loss, as of Liger or torchtune)",
     .shown = cuts_loss,
     .decides_the_run = true},
    {.path = "training.fp4_products",
     .type = &kChoice<&Training::fp4_products, fp4_products_names>,
     .fallback = "all",
     .help = "with precision fp4: all products of layers, or with `mlp` those of attention in fp8",
     .shown = has_fp4,
     .decides_the_run = true},
    {.path = "training.first_layers_16_bits",
     .type = &kCount<&Training::first_layers_16_bits, 0, kMostInKey>,
     .fallback = "0",
     .help = "with precision fp8 or fp4: so many first layers stay in 16 bits",
     .shown = has_fp8,
     .decides_the_run = true},
    {.path = "training.last_layers_16_bits",
     .type = &kCount<&Training::last_layers_16_bits, 0, kMostInKey>,
     .fallback = "0",
     .help = "with precision fp8 or fp4: so many last layers stay in 16 bits",
     .shown = has_fp8,
     .decides_the_run = true},
    {.path = "training.mode",
     .type = &kChoice<&Training::mode, training_mode_names>,
     .fallback = "pretrain",
     .help = "with `lora` or `qlora` adapters are trained and the model is frozen",
     .decides_the_run = true},
    {.path = "training.lora_rank",
     .type = &kCount<&Training::lora_rank, 1, 1 << 16>,
     .fallback = "16",
     .help = "rank of the adapters",
     .settle = settle_lora_rank,
     .shown = trains_adapters,
     .decides_the_run = true},
    {.path = "training.lora_dropout",
     .type = &kFraction<&Training::lora_dropout>,
     .fallback = "0",
     .help = "share of what adapters read that is dropped",
     .shown = trains_adapters,
     .decides_the_run = true},
    {.path = "training.lora_targets",
     .type = &kLoraTargets,
     .fallback = "all three",
     .help = "the products that have adapters",
     .shown = trains_adapters},
    {.path = "training.software",
     .type = &kText<&Training::software>,
     .fallback = "",
     .help = "a label without effect",
     .shown = has_software},
    {.path = "training.outer.islands",
     .type = &kCount<&OuterSteps::islands, 2, kMostInKey>,
     .fallback = "all GPUs train together",
     .help = "parts of the cluster that train apart, each with this batch and layout",
     .shown = has_outer_steps,
     .decides_the_run = true},
    {.path = "training.outer.every",
     .type = &kCount<&OuterSteps::every, 1, kMostInKey>,
     .fallback = "100",
     .help = "with islands: so many steps, and their parameters meet in an outer one",
     .shown = has_outer_steps,
     .decides_the_run = true},
    {.path = "training.outer.precision",
     .type = &kChoice<&OuterSteps::precision, outer_precision_names>,
     .fallback = "fp32",
     .help = "with islands: outer gradients on the wire",
     .shown = has_outer_steps,
     .decides_the_run = true},
    {.path = "training.outer.fragments",
     .type = &kCount<&OuterSteps::fragments, 1, kMostInKey>,
     .fallback = "1",
     .help = "with islands: parts of the model that meet in turn, each once in `every` steps",
     .shown = has_outer_steps,
     .decides_the_run = true},
    {.path = "training.outer.overlap_steps",
     .type = &kCount<&OuterSteps::overlap_steps, 0, kMostInKey>,
     .fallback = "0",
     .help = "with islands: steps that go on beside a meeting",
     .shown = has_outer_steps,
     .decides_the_run = true},
    {.path = "training.outer.host",
     .type = &kTruth<&OuterSteps::host>,
     .fallback = "false",
     .help = "with islands: old parameters and outer momentum lie in host memory",
     .shown = has_outer_steps},
    {.path = "training.bucket_elements",
     .type = &kCount<&FrameworkRules::bucket_elements, 0>,
     .fallback = kByFramework,
     .help = "gradients reduced together; 0: all, or those of a unit of sharding",
     .of_framework = true},
    {.path = "training.gather_bucket_elements",
     .type = &kCount<&FrameworkRules::gather_bucket_elements, 0>,
     .fallback = kByFramework,
     .help = "parameters gathered together; 0: all, or those of a unit of sharding",
     .of_framework = true},
    {.path = "training.prefetch_units",
     .type = &kCount<&FrameworkRules::prefetch_units, 0, 1>,
     .fallback = kByFramework,
     .help = "units gathered ahead of the running one",
     .of_framework = true},
    {.path = "training.host_threads",
     .type = &kCount<&FrameworkRules::host_threads, 0, kMostInKey>,
     .fallback = kByFramework,
     .help = "threads of a rank that update offloaded states; 0: its share of the node's cores",
     .of_framework = true,
     .shown = offloads_optimizer},
    {.path = "training.host_sync_after_p2p",
     .type = &kTruth<&FrameworkRules::host_sync_after_p2p>,
     .fallback = kByFramework,
     .help = "the host waits for each transfer between stages",
     .of_framework = true},
    {.path = "training.host_sync_at_batch",
     .type = &kTruth<&FrameworkRules::host_sync_at_batch>,
     .fallback = kByFramework,
     .help = "the host waits for the GPU where text is handed out",
     .of_framework = true},
    {.path = "training.fused_gradient_accumulation",
     .type = &kTruth<&FrameworkRules::fused_gradient_accumulation>,
     .fallback = kByFramework,
     .help = "weight gradients add into the main buffer",
     .of_framework = true},
    {.path = "training.fused_cross_entropy",
     .type = &kTruth<&FrameworkRules::fuses_loss>,
     .fallback = kByFramework,
     .help = "a few kernels of the loss in place of single steps",
     .of_framework = true},
    {.path = "training.async_tensor_backward",
     .type = &kTruth<&FrameworkRules::async_tensor_backward>,
     .fallback = kByFramework,
     .help = "in backward, tensor parallel collectives run beside products that do not need them",
     .of_framework = true},
    {.path = "training.record_streams",
     .type = &kTruth<&FrameworkRules::records_streams>,
     .fallback = kByFramework,
     .help = "the allocator keeps what a collective of a pass reads until the host knows its end",
     .of_framework = true},
    {.path = "training.scatter_gather_p2p",
     .type = &kTruth<&FrameworkRules::scatter_gather_p2p>,
     .fallback = kByFramework,
     .help = "each tensor rank sends its share between stages, and the receivers gather",
     .of_framework = true},
};

}  // namespace

std::span<const Key> training_keys() { return kRows; }

}  // namespace stepcast
