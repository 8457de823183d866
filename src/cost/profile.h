// SPDX-License-Identifier: Apache-2.0
// A profile: the measured costs of one machine (docs/formats/profile.md, format 1), as the cost
// models use them. Written by calibrate/, read here; nothing in it names a model, suite or case.
// The formulas behind the fitted forms are in docs/cost-models.md, under the names used here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/accelerator.h"
#include "core/enum_names.h"
#include "core/json_fwd.h"
#include "core/result.h"
#include "cost/collective_curve.h"
#include "cost/host_memory.h"
#include "cost/jitter.h"
#include "cost/mpi_curve.h"
#include "cost/provenance.h"
#include "layout/framework.h"
#include "operation/memory_bound.h"
#include "operation/product.h"

namespace stepcast {

struct Rows;  // core/rows.h

// A kernel measured in a short run has the clock to itself; those of a step follow each other, at
// the power limit.
enum class Pace { kShortRun, kBackToBack };

inline constexpr double kLeastFactor = 1e-6, kMostNumber = 1e6;

// One measured GEMM. A profile has samples as rows under the columns (cost/sample_table.h).
struct GemmSample {
  GemmRole role;
  std::int64_t batch, m, n, k;
  double efficiency;              // of the dense peak
  std::int64_t output_bytes = 2;  // of an element of C: 4 where the gradient is kept in fp32
  bool accumulate = false;
  double sm_clock_mhz = 0;  // while it was measured; 0: not told

  static Rows columns();
};

// Fitted form of the GEMM surface; docs/cost-models.md, "GEMM".
struct GemmFit {
  double efficiency = 0.75;  // of the dense peak, of a large, well-shaped product
  double tile_m = 128, tile_n = 256;
  double k_half = 0;  // elements of k at which prologue and epilogue cost as much as the loop
  double memory_fraction = 0.8;                // of the memory bandwidth, when that binds
  double overhead_s = 0;                       // fixed, per kernel
  std::array<double, 3> role_factor{1, 1, 1};  // time factor by GemmRole
  double misaligned_factor = 1;  // time factor of each halving of row alignment below 16 bytes
  double tile_half = 0;    // operand reuse (elements) at which a tile waits as long as it works
  double wave_weight = 1;  // 1: whole waves; 0: tiles spread over SMs without a tail
  double sustained_factor = 1;    // time factor once a long kernel has met the power limit
  double sustained_s = 1e-3;      // duration at which half of that factor is felt
  double accumulate_exposed = 0;  // share of reading and writing C of C += A B that nothing hides
  // Time factor of products that follow each other without rest, as in a training step: the power
  // limit is met whatever a product's own duration. 0: as the two sustained values say.
  double back_to_back = 0;
  double back_to_back_alone = 0;  // the same on a GPU without others; 0: not told (gemm_pace.h)

  static Rows fields();
};

// How measured samples bend the fitted form near them.
struct Neighbourhood {
  double reach = 0.5;  // standard deviation of a sample's influence, in octaves of each dimension
  double shrinkage = 0.1;  // weight of the form itself, in samples
  bool all_roles = false;  // forward samples bend gradients too: their shape matters, not the role
};

// A GEMM surface of its own.
struct GemmCurve {
  GemmFit fit;
  std::vector<GemmSample> samples;
  Neighbourhood neighbourhood;
  Provenance provenance = Provenance::kDataSheet;         // of the fitted form
  Provenance samples_provenance = Provenance::kMeasured;  // of an exact hit
};

// Products of many groups in one kernel, as of experts: the form of as many dense products of a
// group's mean size, with these factors.
struct GroupedFit {
  double rate = 1;                             // on its efficiency
  double bandwidth = 1;                        // on its share of the memory bandwidth
  std::array<double, 3> role_factor{1, 1, 1};  // time factor by GemmRole
  double group_s = 0;                          // fixed, for each group
  double rate_fp8 = 0, rate_fp4 = 0;           // of operands of 8 and 4 bits; 0: as `rate`

  static Rows fields();
};

// One measured attention kernel.
struct AttentionSample {
  bool backward;
  std::int64_t batch, heads, kv_heads, sequence, head_dim;
  bool causal;
  double efficiency;  // of the dense peak, FLOPs as struct Attention counts them
  double sm_clock_mhz = 0;

  static Rows columns();
};

struct AttentionFit {
  double forward_efficiency = 0.5;  // of the dense peak, long sequences, full occupancy
  double backward_efficiency = 0.4;
  double causal_half_length = 0;  // sequence length at which causal masking wastes half a tile row
  double length_half = 0;         // sequence length at which efficiency halves
  double blocks_half = 0;         // (batch*heads*length/128) blocks over SMs at which it halves
  double overhead_s = 0;
  double backward_blocks_half = 0;  // where the backward kernel's efficiency halves
  double backward_length_half = 0;
  double causal_efficiency = 1;  // of long causal sequences against full ones: uneven blocks
  std::array<double, 3> head_dim_factor{1, 1, 1};  // efficiency at 64, 128, 256 against 128
  // Time factor of kernels in a step against a short run. With it, forward samples are of short
  // runs and backward ones of a step; 0: all alike.
  double back_to_back = 0;

  static Rows fields();
};

// A generation of attention kernels and where it is used.
struct AttentionVariant {
  std::string name;  // "fa2", "fa3", "cudnn"
  AttentionFit fit;
  std::vector<AttentionSample> samples;
  Provenance provenance = Provenance::kDataSheet;  // of its fitted form
  Provenance samples_provenance = Provenance::kMeasured;
  DataType type = DataType::kBf16;  // of the samples, standing for its width
};

// Factors by MemoryBoundKind on the time of the traffic.
using KindFactors = std::array<double, kMemoryBoundKinds>;
inline constexpr KindFactors kEqualKinds = [] {
  KindFactors factors{};
  for (double& factor : factors) factor = 1;
  return factors;
}();

struct MemoryFit {
  double fraction = 0.85;  // of the memory bandwidth, large streams
  double half_bytes = 0;   // traffic at which the fixed part equals the streaming part
  double overhead_s = 2e-6;
  KindFactors kind_factor = kEqualKinds;      // of one kernel
  KindFactors backward_factor = kEqualKinds;  // beside it, of backward kernels
  KindFactors step_factor = kEqualKinds;      // of work in steps, instead of both

  static Rows fields();
};

// The host spends this per kernel and per pass, by framework.
struct HostFit {
  double launch_s = 6e-6;          // per lowered operation: Python, autograd and its kernels
  double collective_s = 20e-6;     // per collective or point-to-point call
  double graph_launch_s = 1.5e-6;  // per kernel inside a CUDA graph
  double backward_factor = 1;      // autograd's engine against eager forward
  double step_s = 0;               // per optimizer step: data loader, logging, loss scaling
  double micro_batch_s = 0;        // per micro-batch, where its loss is: its text, masks, logging
  double copy_s = 20e-6;           // per piece of a gathered parameter that it copies by itself
  double operator_s = 0;           // per operator beyond those of a launch (ExpertHost)
  double call_s = 0;               // per call that a module's own code makes (ExpertHost)

  // No measurement here tells the last four: hosts.json alone states them.
  static Rows fields();
};

// A program that calls its kernels itself.
inline constexpr HostFit kNoHost{0, 0, 0, 1, 0, 0, 0, 0, 0};

// The machine that was measured, as far as times depend on it.
struct MeasuredMachine {
  std::string processor;   // "": not stated, as for GPUs
  std::int64_t cores = 0;  // 0: not stated
};

// The time of an operation that was measured as it stands in a program.
struct ExactTime {
  Seconds mean;
  Jitter jitter;
};

struct Profile {
  std::string name;
  std::string file;  // "" for a data sheet
  MeasuredMachine machine;
  std::string device;
  Provenance provenance = Provenance::kDataSheet;  // of its fitted curves
  GemmFit gemm;
  std::vector<GemmSample> gemm_samples;
  AttentionFit attention;
  MemoryFit memory;
  ByFramework<HostFit> host;
  ByFramework<bool> own_host;           // measured with the rest
  std::array<double, kCurves> sigma{};  // log-error of each curve
  std::vector<std::string> fitted_on;   // sources and case ids used for fitting

  GemmCurve gemm_fp8;                                          // of the dense fp8 peak
  std::optional<GemmCurve> gemm_fp4;                           // without it that of fp8 stands in
  std::optional<GemmCurve> gemm_fp32;                          // without it `gemm` stands in
  Provenance gemm_samples_provenance = Provenance::kMeasured;  // of an exact hit
  Neighbourhood neighbourhood;
  GroupedFit grouped;
  Provenance grouped_provenance = Provenance::kDataSheet;
  Provenance memory_provenance = Provenance::kDataSheet;
  std::vector<AttentionVariant> attention_variants;  // other than `attention`'s plain form
  ByFramework<std::string> attention_kernel;         // names a variant; "": the plain form

  std::vector<MpiCurve> mpi;                            // of communication between processes
  std::vector<CollectiveCurve> nccl;                    // of communication between GPUs
  std::map<std::string, ExactTime, std::less<>> exact;  // by signature of the operation
  // Mean time of a kernel over its undisturbed median, which samples and forms hold. It is what the
  // rest of the machine costs a program that runs on its processors.
  double disturbance = 1;
  // SMs that kernels lose to each channel of a collective beside them. One SM holds the channel's
  // block, and the channel's traffic takes memory bandwidth and power from the others.
  double sms_per_channel = 1;
  std::optional<HostMemory> host_memory;  // of the machine that was measured

  const AttentionVariant* variant(const std::string& kernel) const;  // null when there is none
};

// Finds it by name in `folder`, or by path. Host costs come from hosts.json beside it.
Result<Profile> load_profile(const std::string& name_or_path, const std::string& folder);

// Reads the host costs of `document` (docs/formats/profile.md, "Hosts") over those in `hosts`.
void read_hosts(JsonDocument& document, Profile& profile);

// The costs of a device of which nothing was measured: data sheet and the family's usual fractions.
Profile data_sheet_profile(const Accelerator& accelerator);

}  // namespace stepcast
