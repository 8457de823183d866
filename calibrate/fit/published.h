// SPDX-License-Identifier: Apache-2.0
// Kernel tables that others published, as copied into calibrate/published with their sources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/table_unit.h"
#include "core/data_type.h"
#include "core/enum_names.h"
#include "core/json_field.h"
#include "core/quantity.h"
#include "core/result.h"
#include "cost/profile.h"
#include "cost/profile_curves.h"
#include "operation/memory_bound.h"
#include "operation/product.h"

namespace stepcast {

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

  static auto fields() {
    return std::tuple{json_field("kernel", &AttentionChoice::kernel).required(),
                      json_field("from", &AttentionChoice::from).required()};
  }
};

struct AttentionKey {
  std::string device, kernel;
  auto operator<=>(const AttentionKey&) const = default;

  static auto fields() {
    return std::tuple{json_field("device", &AttentionKey::device).required(),
                      json_field("kernel", &AttentionKey::kernel).required()};
  }
};

// Attention kernels of a device that are fitted, and the fitted form that the search begins with.
struct AttentionFitRule {
  AttentionKey fits;
  std::optional<AttentionKey> begins_with;  // an earlier rule's; else what the family usually has
  std::string backward_from;                // the device whose backward pass it has; empty: its own

  static auto fields() {
    using F = AttentionFitRule;
    return std::tuple{json_field(nullptr, &F::fits), json_field("begins_with", &F::begins_with),
                      json_field("backward_from", &F::backward_from)};
  }
};

// A kernel that nobody tabulated, as another one at this rate.
struct AttentionLikeness {
  std::string kernel, like;
  double rate = 1;
  std::string source;

  static auto fields() {
    using F = AttentionLikeness;
    return std::tuple{
        json_field("kernel", &F::kernel).required(), json_field("like", &F::like).required(),
        json_field("rate", &F::rate).within(0.1, 10), json_field("source", &F::source).required()};
  }
};

struct DeviceRules {
  std::string device;
  std::string gemm_from;        // empty: data sheet
  std::string gemm_roles_from;  // whose table tells gradients from forward; empty: gemm_from's
  std::string in_step_from;     // whose products of a step show the clock in a step; empty: its own
  std::optional<FlopsPerSecond> max_matmul, max_matmul_fp8;
  std::string max_matmul_source;
  bool power_limited = false;
  double stream_fraction = 0.8;
  std::string stream_source;
  Seconds interval = Seconds(1.3e-6);
  std::string interval_source;
  std::vector<AttentionChoice> attention;
  std::string notes;

  static auto fields() {
    using F = DeviceRules;
    return std::tuple{json_field("device", &F::device).required(),
                      json_field("gemm_from", &F::gemm_from),
                      json_field("gemm_roles_from", &F::gemm_roles_from),
                      json_field("in_step_from", &F::in_step_from),
                      json_field("max_matmul", &F::max_matmul).with_unit(),
                      json_field("max_matmul_fp8", &F::max_matmul_fp8).with_unit(),
                      json_field("max_matmul_source", &F::max_matmul_source),
                      json_field("power_limited", &F::power_limited),
                      json_field("stream_fraction", &F::stream_fraction).within(0.01, 1),
                      json_field("stream_source", &F::stream_source).required(),
                      json_field("interval", &F::interval).with_unit(),
                      json_field("interval_source", &F::interval_source).required(),
                      json_field("attention", &F::attention).required(),
                      json_field("notes", &F::notes)};
  }
};

// Rate against power of one architecture: two of its devices.
struct PowerLaw {
  std::string slow_device, fast_device;
  FlopsPerSecond slow = FlopsPerSecond(1), fast = FlopsPerSecond(1);
  std::string source;

  static auto fields() {
    using F = PowerLaw;
    return std::tuple{json_field("slow_device", &F::slow_device).required(),
                      json_field("fast_device", &F::fast_device).required(),
                      json_field("slow", &F::slow).with_unit(),
                      json_field("fast", &F::fast).with_unit(),
                      json_field("source", &F::source).required()};
  }
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

  static auto fields() {
    using F = KindFactor;
    return std::tuple{json_field("kind", &F::kind).named(enum_names<MemoryBoundKind>),
                      json_field("architectures", &F::architectures),
                      json_field("factor", &F::factor).within(0.01, 100),
                      json_field("source", &F::source).required()};
  }
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
  static auto fields() {
    using F = Published;
    return std::tuple{json_field("power_law", &F::power_law).required(),
                      json_field("kind_factor", &F::kind_factors).required(),
                      json_field("attention_fits", &F::attention_fits).required(),
                      json_field("attention_like", &F::attention_like).required(),
                      json_field("devices", &F::devices).required()};
  }
};

// One file of them; errors go to the document. A kind that no reader knows is left alone.
void read_published_file(JsonDocument& document, Published& out);

// Every file of `folder` that says "kind": "gemm", "attention", "grouped", "expert_products",
// "memory_bound" or "devices".
Result<Published> read_published(const std::string& folder);

}  // namespace stepcast
