// SPDX-License-Identifier: Apache-2.0
// Kernel tables that others published, as copied into calibrate/published with their sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/table_unit.h"
#include "core/data_type.h"
#include "core/enum_names.h"
#include "core/json_fwd.h"
#include "core/quantity.h"
#include "core/result.h"
#include "cost/profile.h"
#include "cost/profile_curves.h"
#include "operation/memory_bound.h"
#include "operation/product.h"

namespace stepcast {

struct Rows;  // core/rows.h

struct GemmTable {
  std::string source;
  std::string device;
  DataType precision = DataType::kBf16;
  bool scattered = false;   // points of several sources: they fit a form, and bend nothing
  bool short_runs = false;  // each product alone, not among those of a step
  double at_limit = 0;      // time factor of large products at the power limit; 0: not told
  TableUnit unit = TableUnit::kFraction;  // of the samples' efficiencies, until in_fractions()
  std::vector<GemmSample> samples;
  std::vector<GemmSample> held_out;  // of other sizes than the samples; no fit sees them
};

enum class AttentionPass { kForward, kBackward, kBoth };
struct AttentionPoint {
  AttentionPass pass;
  AttentionSample sample;  // `backward` only for kBackward; efficiency in the table's unit
};
struct AttentionTable {
  std::string source;
  std::string device;
  std::string kernel;
  TableUnit unit = TableUnit::kFraction;
  bool short_runs = false;  // by inference engines, which write their cache in the same call
  std::vector<AttentionPoint> points;
  std::vector<AttentionPoint> held_out;  // of other sizes than the points; no fit sees them
};

// The experts of one layer on one of `ranks` ranks, by an inference engine: gate and up, activation
// and down of `tokens` tokens before each is routed to `top_k` experts, evenly.
struct ExpertCall {
  std::int64_t hidden, inter, top_k, experts, ranks, tokens;
  double seconds;
};
struct GroupedTable {
  std::string source;
  std::string device;
  DataType precision = DataType::kBf16;  // of the operands
  std::vector<ExpertCall> calls;
  std::vector<ExpertCall> held_out;  // of other models; no fit sees them
};

// Products of the experts of a rank in a step: `rows` of all experts together.
struct ExpertProduct {
  GemmRole role;
  std::int64_t experts, rows, outputs, inputs;
  double efficiency;  // of the dense peak
};
struct ExpertProductTable {
  std::string source;
  std::string device;
  std::vector<ExpertProduct> products;
  std::vector<ExpertProduct> held_out;  // of other shapes; no fit sees them
};

// Which kernels of which table a device gets.
struct AttentionChoice {
  std::string kernel;
  std::string from;

  static Rows fields();
};

struct AttentionKey {
  std::string device, kernel;
  auto operator<=>(const AttentionKey&) const = default;

  static Rows fields();
};

// Attention kernels of a device that are fitted, and the fitted form that the search begins with.
struct AttentionFitRule {
  AttentionKey fits;
  std::optional<AttentionKey> begins_with;  // an earlier rule's; else what the family usually has
  std::string backward_from;                // the device whose backward pass it has; empty: its own

  static Rows fields();
};

// A kernel that nobody tabulated, as another one at this rate.
struct AttentionLikeness {
  std::string kernel, like;
  double rate = 1;
  std::string source;

  static Rows fields();
};

struct DeviceRules {
  std::string device;
  std::string gemm_from;        // empty: data sheet
  std::string gemm_roles_from;  // whose table tells gradients from forward; empty: gemm_from's
  std::string in_step_from;     // whose products of a step show the clock in a step; empty: its own
  std::optional<FlopsPerSecond> max_matmul, max_matmul_fp8, max_matmul_fp4;
  std::string max_matmul_source;
  bool power_limited = false;
  double stream_fraction = 0.8;
  std::string stream_source;
  Seconds interval = Seconds(1.3e-6);
  std::string interval_source;
  // A collective of so many channels beside kernels saves this part of the time that it would save
  // if neither slowed the other. None: each channel takes one SM, and nothing else is lost.
  std::optional<double> overlap_saving;
  double overlap_channels = 0;
  std::string overlap_source;
  std::vector<AttentionChoice> attention;
  std::string notes;

  static Rows fields();
};

// Rate against power of one architecture: two of its devices.
struct PowerLaw {
  std::string slow_device, fast_device;
  FlopsPerSecond slow = FlopsPerSecond(1), fast = FlopsPerSecond(1);
  std::string source;

  static Rows fields();
};

// Measured kernels, or the steps that stand for one.
struct MemoryPoint {
  std::size_t kind;  // MemoryBoundKind
  bool backward;
  bool in_steps;
  std::int64_t kernels, rows, width;
  double bytes;  // of one element
  double seconds;
};
struct MemoryTable {
  std::string source;
  std::string device;
  bool alone = false;  // tells nothing of other devices of the architecture
  std::vector<MemoryPoint> points;
};

struct KindFactor {
  std::size_t kind = 0;  // MemoryBoundKind
  std::vector<std::string> architectures;
  double factor = 1;
  std::string source;

  static Rows fields();
};

// Products without rest on one GPU alone, and after a rest: what the power limit does.
struct PaceTable {
  std::string source;
  std::string device;
  std::vector<double> factors;  // time without rest over time after a rest
};

struct Published {
  std::vector<GemmTable> gemm;
  std::vector<PaceTable> paces;
  std::vector<AttentionTable> attention;
  std::vector<GroupedTable> grouped;
  std::vector<ExpertProductTable> expert_products;
  std::vector<MemoryTable> memory;
  std::vector<DeviceRules> devices;
  std::vector<AttentionFitRule> attention_fits;  // in the order in which they are fitted
  std::vector<AttentionLikeness> attention_like;
  std::vector<KindFactor> kind_factors;
  PowerLaw power_law;

  // The file of kind "devices" has these; each of the others is one table.
  static Rows fields();
};

// One file of them; errors go to the document. A kind that no reader knows is left alone.
void read_published_file(JsonDocument& document, Published& out);

// Every file of `folder` that says "kind": "gemm", "attention", "grouped", "expert_products",
// "memory_bound" or "devices".
Result<Published> read_published(const std::string& folder);

}  // namespace stepcast
