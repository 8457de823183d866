// SPDX-License-Identifier: Apache-2.0
// The rules by which a framework runs a training and a layout, as far as no key says them.
#pragma once

#include <cstdint>

namespace stepcast {

// How the ranks that share states deal Muon's matrices to each other. Each has the states of whole
// matrices; or the states are flat shards, and a rank works on each matrix that its own touches, on
// its turn of all matrices, which it gathers, or on those that it owns, which others send it.
enum class MuonDeal { kMatrices, kTouched, kTurns, kOwners };

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
  // The allocator keeps what a collective of a pass reads until the host knows that it has ended.
  bool records_streams = false;
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

}  // namespace stepcast
