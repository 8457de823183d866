// SPDX-License-Identifier: Apache-2.0
// The training and layout objects as a file states them: present keys only. resolve() fills in the
// rest; what a default depends on is known only when both objects are read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "layout/scenario.h"

namespace stepcast {

// Keys that stand for a rule of the framework and override it.
struct RulesInput {
  std::optional<std::int64_t> bucket_elements;
  std::optional<std::int64_t> gather_bucket_elements;
  std::optional<std::int64_t> prefetch_units;
  std::optional<bool> host_sync_after_p2p;
  std::optional<bool> fused_gradient_accumulation;
  std::optional<bool> scatter_gather_p2p;
};

struct TrainingInput {
  std::int64_t global_batch = 0;  // required; 0 after an error
  std::optional<std::int64_t> sequence_length;
  std::optional<DataType> precision;
  std::optional<std::string> fp8_recipe;
  std::optional<AttentionKernel> attention;
  std::optional<std::string> optimizer;
  std::optional<Framework> framework;
  std::optional<DataType> grad_precision;
  std::optional<DataType> reduce_precision;
  std::optional<GradClip> grad_clip;
  std::optional<bool> no_sync;
  std::optional<bool> compile;
  std::optional<bool> cuda_graphs;
  std::optional<TrainingMode> mode;
  std::optional<std::int64_t> lora_rank;
  std::optional<std::string> software;
  RulesInput rules;
};

struct OverlapInput {
  std::optional<bool> grad_reduce;
  std::optional<bool> param_gather;
  std::optional<bool> tp;
  std::optional<bool> pp;
};

struct LayoutInput {
  std::optional<std::int64_t> tp, cp, ep, etp, pp, dp;
  std::optional<std::int64_t> micro_batch;
  std::optional<ScheduleKind> schedule;
  std::string schedule_file;
  std::optional<std::int64_t> virtual_stages;
  std::optional<int> zero;
  std::optional<std::int64_t> shard_group;  // 0: all
  std::optional<bool> sequence_parallel;
  std::optional<Recompute> recompute;
  std::optional<std::string> order;
  OverlapInput overlap;
  Offload offload;
  std::vector<std::int64_t> stage_layers;
  bool account_for_embedding = false;
  bool account_for_loss = false;
};

TrainingInput read_training(const JsonValue& value);
LayoutInput read_layout(const JsonValue& value);

// The object `plan`: limits of a search.
struct PlanInput {
  std::optional<std::string> objective;    // step_time, cost or goodput
  std::optional<std::int64_t> max_gpus;    // of the cluster
  std::optional<double> memory_margin;     // of the device's memory, to be left free
  std::optional<double> min_tokens_per_s;  // of all GPUs: what an advice must reach
};
PlanInput read_plan(const JsonValue& value);

RunSettings read_run(const JsonValue& value);

// Fills every default (design decisions beside the code) and derives dp and the framework's rules.
// Values that contradict each other stay as they are: check_legality() names them.
Scenario resolve(Model model, Cluster cluster, const TrainingInput& training,
                 const LayoutInput& layout);

// The same of a scenario whose model and cluster stand: training, layout and rules are written.
void resolve(const TrainingInput& training, const LayoutInput& layout, Scenario& scenario);

// A scenario whose layout is open where its file leaves it open: what a search starts from.
struct OpenScenario {
  Scenario scenario;  // model, cluster and profile; the rest as resolve() fills it in, legal or not
  TrainingInput training;
  LayoutInput layout;
  PlanInput plan;
};

// Like read_scenario(), without the rules that read one of the keys that `open` names for it.
using OpenKeys = std::function<std::vector<std::string>(const LayoutInput&, const TrainingInput&)>;
Result<OpenScenario> read_open_scenario(JsonDocument& document, const DataFolders& folders,
                                        const OpenKeys& open);

}  // namespace stepcast
