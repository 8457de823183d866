// SPDX-License-Identifier: Apache-2.0
// Rules that several frameworks have in common.
#pragma once

#include <cstdint>

#include "cluster/gpu_architecture.h"

namespace stepcast {

struct FrameworkRules;
struct Layout;
struct Release;
struct Training;

// 16-bit training holds 16-bit parameters, and an fp32 copy of them beside.
FrameworkRules half_precision_rules(const Training& training);

// The activation between stages is equal on all tensor ranks unless sequence parallelism has cut
// it, so each sends 1/tp and the receivers gather (arXiv 2104.04473, section 4.1).
bool scatters_p2p(const Layout& layout);

// Transfers hide behind other passes: where each stage takes several chunks in turn, and where it
// has weight gradients to run while it waits.
bool posts_transfers_ahead(const Layout& layout);

// The attention kernels of flash-attn's packages: version 2 since July 2023. On Blackwell, for
// which they have no kernels, PyTorch and Transformer Engine take cuDNN's.
const char* flash_attention_package(Release release, GpuArchitecture architecture);

// PyTorch's library of collectives recorded their streams until 2.8.
bool records_streams(const Training& training);

// Gradients in a bucket of PyTorch's DistributedDataParallel.
std::int64_t ddp_bucket_elements(const Training& training);

// Adds what Megatron's model code does, in whatever framework it runs.
void add_megatron_model(FrameworkRules& rules);

}  // namespace stepcast
