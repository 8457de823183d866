// SPDX-License-Identifier: Apache-2.0
// A scenario resolved: model, cluster, training and layout with every default filled in, all of it
// legal. docs/formats/scenario.md is the file; design decisions stand beside the fields.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "core/data_type.h"
#include "core/json.h"
#include "core/json_field.h"
#include "core/json_tree.h"
#include "core/result.h"
#include "layout/recomputed_modules.h"
#include "layout/run_settings.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace stepcast {

// A row of frameworks() (layout/framework.h).
enum class Framework : std::uint8_t {};
enum class AttentionKernel { kFlash, kUnfused };
enum class GradClip { kGlobal, kPostValidation, kNone };
enum class TrainingMode { kPretrain, kLora, kQlora };
enum class Optimizer { kAdamW, kMuon, kAdamW8bit, kAdafactor, kSgd };
// How Muon's products of a matrix that tensor parallelism cuts are dealt to its ranks.
enum class MuonMode { kDuplicated, kDistributed, kLayer, kBlockwise };
// How the ranks that share states deal Muon's matrices to each other. Each has the states of whole
// matrices; or the states are flat shards, and a rank works on each matrix that its own touches, on
// its turn of all matrices, which it gathers, or on those that it owns, which others send it.
enum class MuonDeal { kMatrices, kTouched, kTurns, kOwners };
// With fp4: all products of layers, or those of MLP and experts, and the others in fp8 (mxfp8).
enum class Fp4Products { kAll, kMlp };
// Offloaded states lie in a node's memory, or on its disks.
enum class OffloadDevice { kCpu, kNvme };
enum class RecomputeMode { kNone, kSelective, kFull };
// Which kernels are launched as CUDA graphs. kOn is a framework's own choice, as `true` states it.
enum class CudaGraphs { kOff, kOn, kFull, kAttention, kMoe };

// The month of a framework's code, which defaults that changed over time follow. The newest code
// has everything.
struct Release {
  std::int32_t months = 0;  // since the year 0; 0: the newest

  static constexpr Release of(std::int32_t year, std::int32_t month) {
    return {12 * year + month - 1};
  }
  constexpr bool newest() const { return months == 0; }
  constexpr bool has(Release change) const { return newest() || months >= change.months; }
};

struct Training {
  std::int64_t global_batch = 0;  // sequences per optimizer step
  std::int64_t sequence_length = 0;
  // Mean and standard deviation of the lengths of documents that share a sequence; 0: none do.
  std::int64_t document_length = 0, document_deviation = 0;
  DataType precision = DataType::kBf16;
  // The type beside products in fp8 or fp4. No key: a device without 16 bits, which emulates fp8,
  // has fp32.
  DataType beside_scaled = DataType::kBf16;
  std::string fp8_recipe;  // with kFp8
  AttentionKernel attention = AttentionKernel::kFlash;
  std::string attention_kernel;  // a curve of profiles; empty: the one that a profile names
  Framework framework{};
  DataType grad_precision = DataType::kFp32;     // stored and accumulated
  DataType reduce_precision = DataType::kFp32;   // on the wire
  DataType moments_precision = DataType::kFp32;  // of Adam, fp32 or bf16
  DataType master_precision = DataType::kFp32;   // of the weights that the optimizer updates
  Optimizer optimizer = Optimizer::kAdamW;
  MuonMode muon_mode = MuonMode::kDuplicated;
  GradClip grad_clip = GradClip::kGlobal;
  bool no_sync = false;
  bool compile = true;      // elementwise chains fused
  bool early_stop = false;  // full recomputation ends where backward has all that it reads
  CudaGraphs cuda_graphs = CudaGraphs::kOff;
  Release release;
  bool launch_blocking = false;  // every launch waits until its kernel has ended
  bool fp8_params = false;       // with fp8: parameters are held and gathered in fp8
  bool fp8_attention = false;    // with fp8: attention reads fp8 too
  bool fp8_head = false;         // with mxfp8: the head's products read it too
  Fp4Products fp4_products = Fp4Products::kAll;
  // With fp8 or fp4: so many of the first and of the last layers stay in 16 bits.
  std::int64_t bf16_layers_at_start = 0, bf16_layers_at_end = 0;
  TrainingMode mode = TrainingMode::kPretrain;
  std::int64_t lora_rank = 0;  // of the adapters; 0 with kPretrain
  double lora_dropout = 0;     // share of an adapter's inputs that is dropped
  AdapterTargets lora_targets;
  std::string software;

  bool trains_adapters() const { return mode != TrainingMode::kPretrain; }  // and nothing else
  // The type of activations, parameters and what is gathered. Only products read scaled types and
  // TF32.
  DataType wide() const {
    if (precision == DataType::kTf32) return DataType::kFp32;
    return is_scaled(precision) ? beside_scaled : precision;
  }
};

// How attention sees a sequence that ranks share.
enum class ContextMethod { kRing, kAllGather, kAllToAll, kHierarchical };

struct Recompute {
  RecomputeMode mode = RecomputeMode::kNone;
  std::int64_t layers = 0;    // the first so many of each chunk; 0: all
  std::int64_t every = 1;     // each so-many-th layer
  RecomputedModules modules;  // of kSelective; plain selective = core_attention
};

struct Overlap {
  bool grad_reduce = false;
  bool param_gather = false;
  bool tp = false;
  bool pp = false;
  bool ep = false;
  bool expert_wgrad = false;    // with ep: weight gradients run beside the exchange behind them
  bool shared_experts = false;  // they run beside the exchanges of their layer
  bool offload = false;         // copies of offloaded states beside the host's update
};

struct Offload {
  double optimizer = 0;
  double parameters = 0;
  double activations = 0;
  OffloadDevice optimizer_device = OffloadDevice::kCpu;
  OffloadDevice parameter_device = OffloadDevice::kCpu;
};

// How ranks are numbered where nothing else is said, the fastest dimension first. Another order has
// the same words.
inline constexpr const char* kUsualOrder = "tp-cp-ep-dp-pp";

struct Layout {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  ContextMethod cp_method = ContextMethod::kRing;
  std::int64_t cp_exchange = 1;  // neighbours that exchange heads: no key, it follows from others
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t micro_batch = 1;
  ScheduleKind schedule = default_schedule();
  std::string schedule_file;  // of "file:PATH"
  // Its text; or the order that prices gave a schedule that asks for times.
  std::shared_ptr<const std::string> schedule_text;
  Placement file_placement = Placement::kStraight;  // how a file's order places chunks
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch_group = 0;  // Pipeline::group
  int zero = 0;
  std::int64_t shard_group = 0;  // ranks that share one copy of the states; 0: all of dp x cp
  bool sequence_parallel = false;
  Recompute recompute;
  std::string order = kUsualOrder;
  Overlap overlap;
  Offload offload;
  std::vector<std::int64_t> stage_layers;  // pp*virtual_stages entries in model order
  bool account_for_embedding = false;
  bool account_for_loss = false;
  // Weight gradients of the head's product of so many micro-batches wait for the end of the passes.
  std::int64_t defer_head_wgrad = 0;
};

// The host of a layer of experts issues this beyond one launch for each of its operations, as
// counted in a framework's code. Operators are called from Python; calls are the kernels, copies
// and allocations that a module's own code makes for each expert in turn.
struct ExpertHost {
  std::int64_t routing_operators = 0;   // scores, choice, loss and statistics of a router
  std::int64_t moving_operators = 0;    // a permutation
  std::int64_t bias_operators = 0;      // the bias of one expert, beside its product
  std::int64_t counting_operators = 0;  // how many rows go where, and their way to the host
  std::int64_t pairing_operators = 0;   // an exchange beside another micro-batch
  std::int64_t product_calls = 0;       // a product of one expert
  std::int64_t cast_calls = 0;          // a cast of one expert's rows
  std::int64_t scale_calls = 0;         // finding the scale of one expert's rows
  std::int64_t block_scale_calls = 0;   // a product whose operands have scales of blocks, beside
  std::int64_t weight_operators = 0;    // the gradient of one expert's weight
  std::int64_t weight_copy_calls = 0;   // the copy in fp8 of one expert's weight, already there
  std::int64_t scaled_operators = 0;    // a product of a dense layer in fp8
};

// Says as data what `framework` stands for beyond the fields above: buckets, prefetch, padding,
// what stays in memory, how it runs a step. Values and sources stand in src/layout/frameworks,
// reasons in docs/frameworks.md.
struct FrameworkRules {
  std::int64_t bucket_elements = 0;          // gradient bucket; 0: one bucket for all
  std::int64_t gather_bucket_elements = 0;   // parameter all-gather bucket; 0: one
  std::int64_t prefetch_units = 1;           // FSDP: gathered units ahead of the running one
  std::int64_t vocab_multiple = 1;           // padding of the vocabulary, times tp
  bool keeps_master_weights = true;          // a separate fp32 copy beside 16-bit parameters
  bool bf16_parameters = true;               // parameters held in 16 bit (FSDP: fp32 shards)
  bool host_sync_after_p2p = false;          // host waits for each pipeline transfer
  bool host_sync_at_batch = false;           // host waits for the GPU where text is handed out
  bool fused_gradient_accumulation = false;  // weight gradients add into the main buffer
  bool scatter_gather_p2p = false;           // 1/tp of the activation crosses, then all-gather
  // In backward the gather of a saved input runs beside the input gradient, and the reduction of
  // the input gradient beside the weight gradient.
  bool async_tensor_backward = false;
  // With overlap.tp: pieces of a product whose result is reduced; 0: as many as tensor ranks, which
  // exchange them by copies and add them up behind the last.
  std::int64_t reduced_pieces = 0;
  // Products that read one input are apart (queries, keys, values; gate and up), so that its
  // gradient is a sum behind them, whose reduction is pipelined with none of them.
  bool sums_input_gradients = false;
  // Layers keep the inputs of their products as tensor parallelism gathered them.
  bool keeps_gathered_inputs = false;

  // Memory-bound kernels that follow each other are one where they can be: a norm and the sum of
  // the residual stream before it, backward behind it; the gradients of an activation and of its
  // bias; clipping, update and rounding. The loss reads 16-bit logits and leaves their gradient in
  // their place.
  bool fuses_neighbours = false;
  // A norm and the product behind it are one module, so that the norm can write what the product
  // reads in fp8 (Transformer Engine's LayerNormLinear).
  bool norms_into_products = false;
  // If products add weight gradients into the main buffer themselves, autograd is still handed
  // tensors of the weights' shapes.
  bool placeholder_gradients = true;

  bool drops_out_in_gpt = false;      // models of the GPT form that state no dropout have some
  bool loss_in_single_steps = false;  // a kernel for each step of the loss, in fp32
  bool fuses_loss = false;            // one kernel on the logits as they are, or a few
  bool takes_loss_metrics = false;    // the trainer takes metrics from the logits in each step
  // Experts with a bias multiply it by the routing weight and add it behind their products, and
  // their activation runs in steps, because no fused one takes a bias.
  bool biased_experts_in_steps = false;
  // Unfused attention has one kernel for scale, mask and softmax, which takes rows up to this
  // length, in fours, of heads in fours; otherwise each step is a kernel in fp32. 0: no such limit.
  std::int64_t longest_fused_softmax = 0;
  // A packed matrix (queries, keys and values; gate and up) has one adapter instead of one for each
  // part.
  bool adapts_packed_matrices = false;
  bool shares_expert_adapters = false;  // the routed experts of a rank have one adapter for all
  bool gradients_by_unit = false;       // gradients live from a unit's backward until it is reduced
  bool casts_to_reduce = false;         // gradients are cast into the type that reduces them
  // A gathered unit is copied out of the flat tensor into those of its parameters.
  bool copies_gathered_units = false;
  // On a pipeline units stay gathered behind a backward, and gradients whole, until the chunk's
  // last backward reduces them.
  bool keeps_units = false;
  // Gradients that wait for a later reduction are summed in the type that reduces them.
  bool sums_wide_gradients = false;
  // A unit's gradients are copied into a flat tensor, which is divided before it is reduced.
  bool flattens_gradients = false;
  bool shards_parameters_with_gradients = false;  // zero 2 shards parameters as zero 3 does
  bool buckets_at_entrance_only = false;          // later stages and chunks reduce in one bucket
  bool cuts_full_buckets = false;  // a bucket ends where it is full, inside a matrix too
  // Whole gradients are summed on every rank, although each updates only its shard.
  bool sums_whole_gradients = false;
  // Gradients are copied into flat tensors: into a bucket to be reduced, and in fp32 to update.
  bool copies_flat_gradients = false;
  // 16-bit gradients stay beside the fp32 ones that they are added to, each through a copy in fp32.
  bool keeps_half_gradients = false;
  bool gathers_by_matrix = false;  // zero 3 gathers and reduces each matrix by itself
  // Zero 3 gathers into a list of one tensor per rank, which the host copies one by one, and waits.
  bool gathers_into_lists = false;
  MuonDeal muon_deal = MuonDeal::kMatrices;
  // Newton's and Schulz's iterations run on the product of a matrix with itself, in fp16; and
  // matrices are as the model's code has them, packed ones too.
  bool muon_on_gram = false, muon_keeps_packed = false;
  ExpertHost expert_host;
  // Threads of a rank that update offloaded states; 0: its share of the node's cores.
  std::int64_t host_threads = 1;
  // Offloading the optimizer moves its moments alone, and a wide copy of the weights beside them.
  bool offloads_moments = false;
  // With an offloaded optimizer shards of gradients go to the host as they are reduced, where those
  // of micro-batches are summed.
  bool sums_on_host = false;
  std::int64_t most_live_elements = 0;  // zero 3: gathered parameters at once; 0: no limit
};

// Holds what `training` and `layout` come to.
struct Settings {
  Training training;
  Layout layout;
  FrameworkRules rules;
};

struct Scenario : Settings {
  Model model;
  Cluster cluster;
  std::optional<RunSettings> run;
  std::string profile;  // "" = the device's own, "none" = data sheet, or a name or path

  std::int64_t micro_batches() const {
    return training.global_batch / (layout.micro_batch * layout.dp);
  }
  std::int64_t padded_vocab() const;
  // Trained by the whole model, and those of them that a token meets.
  std::int64_t adapter_elements() const;
  std::int64_t active_adapter_elements() const;
  // Two stages hold and train the same table: of a tied head, or of prediction modules, which look
  // tokens up beside the head.
  bool shares_trained_table() const {
    const bool is_shared = model.tied_embeddings || (model.mtp_layers > 0 && layout.pp > 1);
    return is_shared && !training.trains_adapters();
  }
};

const char* name_of(Framework framework);
const char* name_of(RecomputeMode mode);

struct DataFolders {
  std::string models;
  std::string topologies;
  std::string profiles;

  static auto fields() {
    using F = DataFolders;
    return std::tuple{json_field("models", &F::models).required(),
                      json_field("topologies", &F::topologies).required(),
                      json_field("profiles", &F::profiles).required()};
  }
};

// Reads and checks a scenario document: defaults, legality, "not supported yet". All errors of the
// file are returned together. (`set` overrides and short flags are applied to the JSON before.)
Result<Scenario> read_scenario(JsonDocument& document, const DataFolders& folders);

// Accepts a scenario that need not be forecast, too: it may have what is only not supported yet, as
// far as a Scenario has a field for it.
Result<Scenario> read_legal_scenario(JsonDocument& document, const DataFolders& folders);

// The resolved scenario as JSON text (format 1), every default filled in.
SortedJson to_json(const Scenario& scenario);

}  // namespace stepcast
