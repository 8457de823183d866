// SPDX-License-Identifier: Apache-2.0
// The forecast of one step (format 1; docs/formats/prediction.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/id.h"
#include "core/quantity.h"
#include "core/result.h"
#include "cost/provenance.h"
#include "operation/memory_parts.h"
#include "operation/phase.h"
#include "predict/beside.h"
#include "predict/outer_step.h"
#include "predict/sent_collectives.h"
#include "predict/time_parts.h"
#include "program/rank_stream.h"

namespace stepcast {

struct DataFolders;
struct Program;
struct Scenario;

struct RankClass {
  std::vector<RankId> ranks;
  std::int32_t stage = 0;
  Seconds busy;
  double bubble_fraction = 0;
  TimeParts time;
  ByteCount peak_memory = 0;
  Seconds peak_at;
  MemoryParts memory{};           // at the peak
  ByteCount reserved_bytes = 0;   // with the caching allocator's rounding and fragmentation
  ByteCount framework_bytes = 0;  // context, libraries, communicators
  ByteCount host_bytes = 0;       // offloaded states and activations, at most
  ByteCount device_memory = 0;    // of its GPU, as the driver reports it
  std::string gpu;                // which, where not all are alike: "h100-sxm5-80g at 80 %"
};

struct PathStep {
  std::string what;
  Seconds time;
};

// A slice of a timeline, for traces and pictures.
struct TraceSlice {
  std::int32_t rank_class;
  Stream stream;
  std::string name;
  Seconds start;
  Seconds duration;
  Phase phase;
  std::int32_t micro_batch;
  std::int32_t chunk;
  bool collective;         // or a message between stages
  ByteCount bytes;         // that it moves
  std::int32_t sent = -1;  // into Prediction::collectives
};
struct MemorySample {
  std::int32_t rank_class;
  Seconds at;
  MemoryParts parts;
};

// A rank, a node or a stage among samples of a step.
struct SampleShare {
  std::int32_t place;    // its number
  std::int64_t samples;  // in which runs whose pace it set are on the critical path
  // On the mean of all samples: what these took longer than on ordinary GPUs without jitter.
  Seconds cost;
};

// Steps as they vary (predict/step_samples.h).
struct StepSamples {
  std::int64_t count = 0;
  std::uint64_t seed = 0;
  Seconds mean, p5, p50, p95;
  std::vector<SampleShare> ranks, nodes, stages;  // the dearest first
};

struct SampleOptions {
  std::int64_t count = 0;  // 0: none
  std::uint64_t seed = 0;
  int threads = 1;
};

// Every instant of the critical rank's step once, as ideal FLOP time or as a loss or wait (>= 0).
struct Waterfall {
  Seconds ideal;
  Seconds gemm_inefficiency, attention_inefficiency, memory_bound, recompute, optimizer;
  Seconds imbalance;  // compute of the critical rank beyond the mean over ranks
  TimeParts rest;     // exposed, bubble, other
};

// How attention counts among the FLOPs of a step: every query meets every key, or only those before
// it, about half. Published figures mostly count in full.
enum class FlopCount { kFull, kCausal };
const char* name_of(FlopCount count);

// How long a link would be full in one step, with all that is sent over it.
struct LinkTime {
  std::array<Seconds, kTrafficKinds> by_traffic{};
  Seconds others;  // norms over all stages, copies to hosts
  Seconds all() const;
};

struct Prediction {
  bool fits = true;
  // With outer steps the mean of a period; all islands together do the tokens.
  Seconds step_time, step_time_low, step_time_high;
  std::vector<std::string> unproven;  // mechanisms that too few runs or sources exercised
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  double model_tflops_per_gpu = 0;
  double hardware_tflops_per_gpu = 0;
  FlopCount flops = FlopCount::kFull;
  double mfu = 0;
  double hfu = 0;  // infinite where the count is more than the device can have executed
  double mfu_causal = 0, hfu_causal = 0;  // with attention counted as a causal mask leaves it
  // Sequences are long, or the causal count is much less: people read the causal ones.
  bool reads_causal = false;
  double bubble_fraction = 0;
  double bubble_fraction_steady = 0;
  TimeParts time;  // of the critical rank
  std::array<double, kProvenances> provenance{};
  ByteCount peak_memory = 0;
  ByteCount peak_reserved = 0;
  ByteCount peak_device = 0;
  ByteCount peak_device_low = 0, peak_device_high = 0;  // the central 90 % (predict/interval.h)
  ByteCount device_memory = 0;
  ByteCount peak_host = 0;    // of what was offloaded, all ranks of the fullest node together
  ByteCount host_memory = 0;  // of a node; 0: not known
  std::vector<RankClass> rank_classes;
  std::vector<PathStep> critical_path;
  Waterfall waterfall;
  std::optional<RankId> alone;  // of this rank alone: no rates, no waterfall
  std::uint64_t simulated_tasks = 0;
  std::vector<TraceSlice> slices;  // only when asked for
  std::vector<MemorySample> memory_samples;
  std::vector<LinkTime> link_use;  // likewise; by LinkId (predict/link_use.h)
  Seconds lost_on_links;           // likewise; of the step time, by transfers that share a link
  std::vector<SentCollective> collectives;  // with PredictOptions::collectives
  StepSamples samples;                      // with PredictOptions::samples
  OuterStep outer;
  JobsBeside beside;
};

#ifdef STEPCAST_CHECK_CAUSES
inline constexpr bool kChecksCauses = true;
#else
inline constexpr bool kChecksCauses = false;
#endif

struct PredictOptions {
  bool fold = true;
  bool expand = false;  // every operator its own task instead of one macro activity per chunk
  bool trace = false;
  bool kernels = true;       // a trace also has those inside its passes
  bool collectives = false;  // lists what the step sends, and how
  bool contention = true;    // false: transfers do not share links, each goes as if alone
  bool other_jobs = true;    // false: the scenario's other jobs do not run
  // This rank as it runs without the others: transfers are neither issued nor take time, and every
  // message is there at once. Its kernels, host and memory are those that it has among them.
  std::optional<RankId> alone = {};
  // Price the program as this project's executor runs it on GPUs, whatever its framework
  // (use_own_kernels()).
  bool own_kernels = false;
  FlopCount flops = FlopCount::kFull;
  // Intervals are made without the errors of this publisher's runs; "": of all.
  std::string without_errors_of = {};
  SampleOptions samples = {};
  // Asserts that no cause comes behind its effect, in the program and in its replay
  // (program/check_causality.h, predict/check_replay.h). Builds with sanitizers do it always.
  bool check = kChecksCauses;
  // Asked now and then; once it returns true, the forecast ends without a result: with a
  // list of no errors.
  std::function<bool()> stop = {};
};

// FLOPs of one step over all GPUs (docs/terminology.md, "Work"). `causal_half` halves attention.
Flops model_flops(const Scenario& scenario, bool causal_half = false, bool logits = true);
// Attention's scores and their weighted sums take so many of them.
Flops model_attention_flops(const Scenario& scenario, bool causal_half = false);
Flops hardware_flops(const Scenario& scenario);
Flops hardware_flops(const Scenario& scenario, const Program& program,  // of its lowering
                     bool causal_half = false);

Result<Prediction> predict(const Scenario& scenario, const DataFolders& folders,
                           const PredictOptions& options = {});

// Uses existing prices, made for a scenario with the same cluster, profile and framework.
struct Pricing;
Result<Prediction> predict(const Scenario& scenario, const Pricing& pricing,
                           const PredictOptions& options = {});

}  // namespace stepcast
