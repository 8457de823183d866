// SPDX-License-Identifier: Apache-2.0
// Tells one architecture of devices from another, as far as forecasts depend on it. A new one is an
// enumerator and its row in gpu_architecture.cpp; everyone else asks the row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

enum class GpuArchitecture {
  kVolta,
  kTuring,
  kAmpere,
  kAda,
  kHopper,
  kBlackwell,
  kCdna3,
  kCdna4,
  kOther,
  kCpu
};

// The rows of NCCL's tables (NVIDIA/nccl, src/graph/tuning.cc and topo.h), the oldest first.
enum class NcclGeneration { kVolta, kAmpere, kHopper, kBlackwell };

struct ArchitectureTraits {
  const char* name;   // in files
  const char* title;  // in sentences

  // How NCCL counts it; empty where NCCL does not run.
  std::optional<NcclGeneration> nccl = std::nullopt;
  bool runs_rccl = false;          // AMD's library of the same interface
  BytesPerSecond nvlink{25e9};     // of one link (NVLink or xGMI), each direction
  double nvlink_part = 20.0 / 25;  // of it that NCCL counts on
  bool moves_by_tma = false;       // an engine beside the SM's threads moves the data of a send

  // A product takes both operands of fp8 by rows or by columns; else by rows alone, so that the
  // weight gradient needs transposed copies.
  bool reads_fp8_both_ways = false;
  bool has_block_scales = false;  // products take a scale for each 32 elements (mxfp8)
  bool has_mxfp4 = false;         // frameworks train in fp4 with them
  bool has_nvfp4 = false;         // and one for each 16 elements of fp4, as NVIDIA's recipe has it

  bool has_flash_attention = true;  // the flash-attn packages have kernels for it
  bool prefers_cudnn = false;       // Transformer Engine asks cuDNN for attention first

  // Streams share one hardware queue, because frameworks set CUDA_DEVICE_MAX_CONNECTIONS to 1 (as
  // Megatron's arguments.py demands below compute capability 10): a collective issued before a
  // product begins before it. With many queues the product takes all SMs first, and the collective
  // beside it waits until its blocks end.
  bool has_one_queue = true;

  // The part of the dense peak that large products reach, and attention over long sequences, where
  // nothing was measured.
  double product_efficiency = 0.5;
  double attention_efficiency = 0.3;
};

const ArchitectureTraits& traits_of(GpuArchitecture architecture);
const char* name_of(GpuArchitecture architecture);
std::vector<GpuArchitecture> all_architectures();
std::vector<std::string> architecture_names();  // in the order of the enumerators

// NCCL's tables name an architecture so. Ampere's rows stand for those they do not know.
NcclGeneration nccl_generation(GpuArchitecture architecture);

}  // namespace stepcast
