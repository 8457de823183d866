// SPDX-License-Identifier: Apache-2.0
// Says what a framework's name stands for. Each framework is one file in layout/frameworks, which
// fills a FrameworkTraits, and one entry of the list in framework.cpp. Everyone else asks rules by
// their meaning: the traits here, or the FrameworkRules of a resolved scenario. docs/frameworks.md
// is the table with its reasons.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/gpu_architecture.h"
#include "layout/findings.h"
#include "layout/layout.h"
#include "layout/training.h"
#include "schedule/schedule_kind.h"

namespace stepcast {

struct FrameworkRules;
struct Scenario;

struct FrameworkTraits {
  const char* name;  // in scenario files and in profiles
  // Trainers that run steps this way, as people call them (plain_name of core/data_name.h).
  std::span<const std::string_view> trainers = {};

  // Defaults of scenario keys. `default_for`: which stated trainings and layouts mean this
  // framework when none is named; null: none do.
  bool (*default_for)(const Training& training, const Layout& layout) = nullptr;
  const char* default_when = "";  // says it in words: "zero is 3"
  int zero = 0;
  bool shards_among_several = false;  // a rank that holds the whole model has zero 0 by default
  bool compile = true;          // elementwise chains run as fused kernels
  bool gradients_fp32 = false;  // 16-bit training keeps and reduces gradients in fp32
  // The layout has its schedule and its zero by then.
  Overlap (*overlap)(const Training& training, const Layout& layout);
  FrameworkRules (*rules)(const Training& training, const Layout& layout);

  // A search may propose only these: schedules that the framework itself has. The second says
  // whether it hides transfers between stages behind other micro-batches under this schedule.
  bool (*offers)(ScheduleKind schedule);
  bool (*offers_pipeline_overlap)(ScheduleKind schedule);
  // Methods that it has for sequences that ranks share, best known first, and whether it shards
  // states inside groups of ranks; a search proposes no other.
  std::span<const ContextMethod> context_methods = {};
  bool shards_in_groups = false;
  bool outer_steps = false;            // of islands that train apart
  bool recomputes_operations = false;  // has the module torchtitan_op
  bool pairs_passes = false;           // exchanges tokens beside another micro-batch
  bool hides_in_exchanges = false;     // runs shared experts beside the exchanges of tokens
  bool defers_head = false;            // has layout.defer_head_wgrad
  // Muon: with these stages of zero, and in these modes, the usual one first.
  bool has_muon = false;
  int most_zero_of_muon = 3;
  std::span<const MuonMode> muon_modes = {};
  // Each can leave its optimizer to host memory. It can leave these there too, or to disks.
  struct OffloadTraits {
    bool parts = false;          // a fraction of the optimizer, with any zero
    bool sharded_parts = false;  // and with zero 3
    bool parameters = false;     // with zero 3, beside the optimizer
    bool together = false;       // both or neither
    bool disks = false;
  } offload = {};
  bool has_narrow_weights = false;    // the optimizer may update parameters in 16 bits
  bool has_small_optimizers = false;  // adamw_8bit and adafactor, which update tensor by tensor
  bool has_fp4 = false;
  bool has_fp8_head = false;       // training.fp8_head
  bool stores_fp8_inputs = false;  // training.fp8_activation_input
  bool fuses_experts = false;      // model.moe.fused_mlp
  bool keeps_wide_layers = false;  // some first and last layers in 16 bits
  // Clips after the step, where a schedule asks for it: forks that have such schedules.
  bool validates_after_step = false;
  // A ring of context parallelism passes on keys and values of all query heads, adds the results
  // of its steps up one by one in fp32, in single kernels, and passes on gradients in fp32.
  bool ring_adds_in_fp32 = false;
  // Which attention kernel it calls where attention is fused, by the names that profiles have for
  // kernels; null: what the profile has.
  const char* (*attention_kernel)(Release release, GpuArchitecture architecture) = nullptr;
  const char* fp8_recipe = "delayed";  // where none is stated
  // When it got what it has by default today.
  Release flash_attention_since = {};
  Release sequence_parallel_since = {};
  Release data_overlap_since = {};  // beside the backward and the forward, by its own code
  Release tensor_parallel_since = {};
  Release tensor_overlap_since = {};
  Release pipeline_since = {};
  Release interleaving_since = {};
  Release sharded_optimizer_since = {};
  Release selective_recompute_since = {};
  Release partial_recompute_since = {};  // full recomputation of some layers
  // Training::early_stop where nothing is said: since then (none: never), and without a compiled
  // graph until the other.
  std::optional<Release> checkpoint_stops_early_since = {}, checkpoint_runs_on_since = {};
  // On one replica all stages of zero do the same.
  bool zero_needs_replicas = false;

  // Adds what it refuses of a scenario, in the words of its own checks; null: nothing.
  void (*check_zero)(const Scenario& scenario, Findings& findings) = nullptr;
  void (*check_overlap)(const Scenario& scenario, Findings& findings) = nullptr;
  bool has_zero_1 = true;
  // A search tries no less, where there are replicas, and no more than this: the rest is rare
  // there, and no recorded run shows how it does.
  int least_proposed_zero = 0;
  int most_proposed_zero = 3;
  int most_proposed_zero_on_pipelines = 3;
  int most_proposed_zero_with_tensor = 3;
  std::int64_t most_proposed_virtual_stages = std::numeric_limits<std::int64_t>::max();
  // Adapters over other axes than data parallel ranks.
  bool proposes_spread_adapters = true;
  bool proposes_tensor_overlap = true;
  bool proposes_recomputed_layers = true;  // some of them; else all or none

  bool is_own_executor = false;  // this project's executor, whose kernels a profile measures
};

// The first is the default where no other one takes a layout.
std::span<const FrameworkTraits* const> frameworks();
const FrameworkTraits& traits_of(Framework framework);
Framework framework_named(std::string_view name);  // which must be there
Framework default_framework(const Training& training, const Layout& layout);
std::vector<Framework> default_frameworks();  // all that default_framework() may return
// "megatron" or "megatron or fsdp": those that have it.
std::string frameworks_with(bool FrameworkTraits::*trait);
Framework own_executor();

// The rules that follow from a resolved training and layout.
FrameworkRules rules_of(const Training& training, const Layout& layout);

// One value for each framework.
template <class T>
class ByFramework {
 public:
  ByFramework() : values_(frameworks().size()) {}

  T& operator[](Framework framework) { return values_[static_cast<std::size_t>(framework)].value; }
  const T& operator[](Framework framework) const {
    return values_[static_cast<std::size_t>(framework)].value;
  }
  void fill(const T& value) {
    for (auto& entry : values_) entry.value = value;
  }
  bool operator==(const ByFramework&) const = default;

 private:
  struct Entry {  // so that a vector of truths hands out references too
    T value{};
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> values_;
};

// All of them, in the order of the list.
std::vector<Framework> all_frameworks();

}  // namespace stepcast
