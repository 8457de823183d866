// SPDX-License-Identifier: Apache-2.0
// A profile: the measured costs of one machine (docs/formats/profile.md, format 1), as the cost
// models use them. Written by calibrate/, read here; nothing in it names a model, suite or case.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/accelerator.h"
#include "core/json.h"
#include "core/result.h"
#include "cost/provenance.h"
#include "layout/scenario.h"
#include "program/operation.h"

namespace stepcast {

// One measured GEMM.
struct GemmSample {
  GemmRole role;
  std::int64_t batch, m, n, k;
  double efficiency;  // of the dense peak
};

// Fitted form of the GEMM surface; docs/cost-models.md, "GEMM".
struct GemmFit {
  double efficiency = 0.75;     // of the dense peak, of a large, well-shaped product
  double tile_m = 128, tile_n = 256;
  double k_half = 0;            // elements of k at which prologue and epilogue cost as much as the loop
  double memory_fraction = 0.8; // of the memory bandwidth, when that binds
  double overhead_s = 0;        // fixed, per kernel
  std::array<double, 3> role_factor{1, 1, 1};  // time factor by GemmRole
  double misaligned_factor = 1; // when a dimension is no multiple of 64 elements
};

struct AttentionFit {
  double forward_efficiency = 0.5;   // of the dense peak, long sequences, full occupancy
  double backward_efficiency = 0.4;
  double causal_half_length = 0;     // sequence length at which causal masking wastes half a tile row
  double length_half = 0;            // sequence length at which efficiency halves
  double blocks_half = 0;            // (batch*heads*length/128) blocks over SMs at which it halves
  double overhead_s = 0;
};

struct MemoryFit {
  double fraction = 0.85;            // of the memory bandwidth, large streams
  double half_bytes = 0;             // traffic at which the fixed part equals the streaming part
  double overhead_s = 2e-6;
  std::array<double, 13> kind_factor{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};  // by ElementwiseKind
};

// What the host spends per kernel and per pass, by framework.
struct HostFit {
  double launch_s = 6e-6;          // per kernel, queued from the framework
  double collective_s = 20e-6;     // per collective or point-to-point call
  double graph_launch_s = 1.5e-6;  // per kernel inside a CUDA graph
  double backward_factor = 1;      // autograd's engine against eager forward
  double step_s = 0;               // per optimizer step: data loader, logging, loss scaling
};

struct Profile {
  std::string name;
  std::string device;
  Provenance provenance = Provenance::kDataSheet;  // of its fitted curves
  GemmFit gemm;
  std::vector<GemmSample> gemm_samples;
  AttentionFit attention;
  MemoryFit memory;
  std::array<HostFit, 4> host;                 // by Framework
  std::array<double, kCurves> sigma{};         // log-error of each curve
  double overlap_slowdown = 0;                 // extra time of compute per unit of concurrent NCCL time
  std::vector<std::string> fitted_on;          // sources and case ids used for fitting
};

Result<Profile> load_profile(const std::string& name_or_path, const std::string& folder);

// The costs of a device of which nothing was measured: data sheet and the family's usual fractions.
Profile data_sheet_profile(const Accelerator& accelerator);

}  // namespace stepcast
