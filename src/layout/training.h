// SPDX-License-Identifier: Apache-2.0
// A training, whatever its layout: batch, precision, kernels, optimizer, framework. All is filled
// in; docs/formats/scenario.md is the file, and design decisions stand beside the fields.
#pragma once

#include <cstdint>
#include <string>

#include "core/data_type.h"
#include "model/adapter_targets.h"

namespace stepcast {

// A row of frameworks() (layout/framework.h).
enum class Framework : std::uint8_t {};
enum class AttentionKernel { kFlash, kUnfused };
enum class GradClip { kGlobal, kPostValidation, kNone };
enum class TrainingMode { kPretrain, kLora, kQlora };
enum class Optimizer { kAdamW, kMuon, kAdamW8bit, kAdafactor, kSgd };
// How Muon's products of a matrix that tensor parallelism cuts are dealt to its ranks.
enum class MuonMode { kDuplicated, kDistributed, kLayer, kBlockwise };
// With fp4: all products of layers, or those of MLP and experts, and the others in fp8 (mxfp8).
enum class Fp4Products { kAll, kMlp };
// Which kernels are launched as CUDA graphs. kOn is a framework's own choice, as `true` states it.
enum class CudaGraphs { kOff, kOn, kFull, kAttention, kMoe };
const char* name_of(Framework framework);

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

// Numbers of outer gradients on the wire.
enum class OuterPrecision { kFp32, kBf16, kFp4 };

// Islands of GPUs train apart, and their parameters meet after so many steps (DiLoCo, arXiv
// 2311.08105; in fragments beside the steps, 2501.18512). Batch and layout are of one island.
struct OuterSteps {
  std::int64_t islands = 0;  // 0: all GPUs train together
  std::int64_t every = 100;  // inner steps
  OuterPrecision precision = OuterPrecision::kFp32;
  std::int64_t fragments = 1;      // that meet in turn, each once in `every` steps
  std::int64_t overlap_steps = 0;  // inner steps beside a meeting
  bool host = false;               // old parameters and outer momentum lie in host memory

  bool any() const { return islands > 1; }
  std::int64_t bits() const {
    return precision == OuterPrecision::kFp32 ? 32 : precision == OuterPrecision::kBf16 ? 16 : 4;
  }
};

inline constexpr const char* kMxfp4 = "mxfp4";  // as a precision

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
  // Parts of a micro-batch's tokens, for each of which the head makes logits, loss and gradients by
  // themselves; 1: all at once.
  std::int64_t loss_chunks = 1;
  Release release;
  bool launch_blocking = false;       // every launch waits until its kernel has ended
  bool vboost = false;                // power of the memory is given to the cores
  bool fp8_params = false;            // with fp8: parameters are held and gathered in fp8
  bool fp8_attention = false;         // with fp8: attention reads fp8 too
  bool fp8_head = false;              // with mxfp8: the head's products read it too
  bool fp8_activation_input = false;  // what SwiGLU reads waits for the backward in fp8
  bool mxfp4 = false;  // with fp4: a scale for each 32 numbers (MX), else for each 16 (NVFP4)
  Fp4Products fp4_products = Fp4Products::kAll;
  // With fp8 or fp4: so many of the first and of the last layers stay in 16 bits.
  std::int64_t first_layers_16_bits = 0, last_layers_16_bits = 0;
  TrainingMode mode = TrainingMode::kPretrain;
  std::int64_t lora_rank = 0;  // of the adapters; 0 with kPretrain
  double lora_dropout = 0;     // share of an adapter's inputs that is dropped
  AdapterTargets lora_targets;
  std::string software;
  OuterSteps outer;

  const char* precision_name() const { return mxfp4 ? kMxfp4 : name_of(precision); }
  bool trains_adapters() const { return mode != TrainingMode::kPretrain; }  // and nothing else
  // The type of activations, parameters and what is gathered. Only products read scaled types and
  // TF32.
  DataType wide() const {
    if (precision == DataType::kTf32) return DataType::kFp32;
    return is_scaled(precision) ? beside_scaled : precision;
  }
};

}  // namespace stepcast
