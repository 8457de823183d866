// SPDX-License-Identifier: Apache-2.0
// Sources. NVLink: data sheets (25 GB/s a link up to Hopper, 50 with Blackwell), and what NCCL
// counts of it in topo.h: 20, 20.6 and 40.1 GB/s. Efficiency of products: max achievable matmul of
// the family (stas00/ml-engineering@744d01e1, compute/accelerator/README.md) times 0.93, what the
// A100's training shapes reach of theirs (MooreThreads/SimuMax@4dcaae51); a BLAS on one core
// reaches 0.7 to 0.9 with large products. AMD: means over products of training, 607 of 1,307
// TFLOP/s forward on the MI300X, 1,535 and 1,351 of 2,500 forward and backward on the MI355X
// (AMD-AGI/Primus-Turbo@b3ed2d77, agent_docs/MI300X and benchmark/baselines). An xGMI link of the
// MI300X carries 48 of its 64 GB/s after protocol and CRC (ROCm/rccl pull request 1210); nobody
// says it of the MI355X, which counts alike. CDNA 4 has scales for 32 elements (MX), none for 16.
// Efficiency of attention: FlashAttention-2 on the A100 and H100, non-causal, long sequences
// (assets/flash2_*_benchmark.png of Dao-AILab/flash-attention@0251105a); 456 of 1,307 TFLOP/s on
// the MI300X (Primus-Turbo, the mean of its table); others as the nearer.
#include "cluster/gpu_architecture.h"

#include <array>
#include <cstddef>

namespace stepcast {
namespace {

constexpr std::array kRows = {
    ArchitectureTraits{.name = "volta",
                       .title = "Volta",
                       .nccl = NcclGeneration::kVolta,
                       .product_efficiency = 0.75,
                       .attention_efficiency = 0.65},
    ArchitectureTraits{.name = "turing",
                       .title = "Turing",
                       .nccl = NcclGeneration::kVolta,
                       .product_efficiency = 0.75,
                       .attention_efficiency = 0.65},
    ArchitectureTraits{.name = "ampere",
                       .title = "Ampere",
                       .nccl = NcclGeneration::kAmpere,
                       .product_efficiency = 0.78,
                       .attention_efficiency = 0.65},
    ArchitectureTraits{.name = "ada",
                       .title = "Ada",
                       .nccl = NcclGeneration::kAmpere,
                       .product_efficiency = 0.75,
                       .attention_efficiency = 0.65},
    ArchitectureTraits{.name = "hopper",
                       .title = "Hopper",
                       .nccl = NcclGeneration::kHopper,
                       .nvlink_part = 20.6 / 25,
                       .moves_by_tma = true,
                       .prefers_cudnn = true,
                       .product_efficiency = 0.70,
                       .attention_efficiency = 0.40},
    ArchitectureTraits{.name = "blackwell",
                       .title = "Blackwell",
                       .nccl = NcclGeneration::kBlackwell,
                       .nvlink = BytesPerSecond(50e9),
                       .nvlink_part = 40.1 / 50,
                       .moves_by_tma = true,
                       .reads_fp8_both_ways = true,
                       .has_block_scales = true,
                       .has_nvfp4 = true,
                       .has_flash_attention = false,
                       .prefers_cudnn = true,
                       .has_one_queue = false,
                       .product_efficiency = 0.60,
                       .attention_efficiency = 0.40},
    ArchitectureTraits{.name = "cdna3",
                       .title = "CDNA 3",
                       .runs_rccl = true,
                       .nvlink = BytesPerSecond(64e9),
                       .nvlink_part = 48.0 / 64,
                       .product_efficiency = 0.46,
                       .attention_efficiency = 0.35},
    ArchitectureTraits{.name = "cdna4",
                       .title = "CDNA 4",
                       .runs_rccl = true,
                       .nvlink = BytesPerSecond(76.8e9),
                       .nvlink_part = 48.0 / 64,
                       .has_block_scales = true,
                       .has_mxfp4 = true,
                       .product_efficiency = 0.58,
                       .attention_efficiency = 0.35},
    ArchitectureTraits{.name = "other",
                       .title = "others",
                       .product_efficiency = 0.50,
                       .attention_efficiency = 0.30},
    ArchitectureTraits{.name = "cpu",
                       .title = "processors",
                       .reads_fp8_both_ways = true,  // it expands them first
                       .product_efficiency = 0.70,
                       .attention_efficiency = 0.30},
};
static_assert(kRows.size() == static_cast<std::size_t>(GpuArchitecture::kCpu) + 1,
              "a row for each architecture, in the order of the enumerators");

}  // namespace

const ArchitectureTraits& traits_of(GpuArchitecture architecture) {
  return kRows[static_cast<std::size_t>(architecture)];
}

const char* name_of(GpuArchitecture architecture) { return traits_of(architecture).name; }

std::vector<GpuArchitecture> all_architectures() {
  std::vector<GpuArchitecture> out;
  for (std::size_t i = 0; i < kRows.size(); ++i) out.push_back(static_cast<GpuArchitecture>(i));
  return out;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const ArchitectureTraits& row : kRows) names.emplace_back(row.name);
  return names;
}

NcclGeneration nccl_generation(GpuArchitecture architecture) {
  return traits_of(architecture).nccl.value_or(NcclGeneration::kAmpere);
}

}  // namespace stepcast
