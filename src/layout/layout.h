// SPDX-License-Identifier: Apache-2.0
// A layout of a model over ranks and over time: degrees of parallelism, schedule, sharding,
// recomputation, overlap and offload. All is filled in; docs/formats/scenario.md is the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layout/recomputed_modules.h"
#include "schedule/schedule_kind.h"

namespace stepcast {

// Offloaded states lie in a node's memory, or on its disks.
enum class OffloadDevice { kCpu, kNvme };
enum class RecomputeMode { kNone, kSelective, kFull };
const char* name_of(RecomputeMode mode);

// How attention sees a sequence that ranks share.
enum class ContextMethod { kRing, kAllGather, kAllToAll, kHierarchical };

struct Recompute {
  RecomputeMode mode = RecomputeMode::kNone;
  std::int64_t layers = 0;    // the first so many of each chunk; 0: all
  std::int64_t every = 1;     // each so-many-th layer
  RecomputedModules modules;  // of kSelective; plain selective = core_attention
};

struct Overlap {
  bool grad_reduce = false;
  bool param_gather = false;
  bool tp = false;
  bool pp = false;
  bool ep = false;
  bool expert_wgrad = false;    // with ep: weight gradients run beside the exchange behind them
  bool shared_experts = false;  // they run beside the exchanges of their layer
  bool offload = false;         // copies of offloaded states beside the host's update
};

struct Offload {
  double optimizer = 0;
  double parameters = 0;
  double activations = 0;
  OffloadDevice optimizer_device = OffloadDevice::kCpu;
  OffloadDevice parameter_device = OffloadDevice::kCpu;
};

// How ranks are numbered where nothing else is said, the fastest dimension first. Another order has
// the same words.
inline constexpr const char* kUsualOrder = "tp-cp-ep-dp-pp";

struct Layout {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  ContextMethod cp_method = ContextMethod::kRing;
  std::int64_t cp_exchange = 1;  // neighbours that exchange heads: no key, it follows from others
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t micro_batch = 1;
  ScheduleKind schedule = default_schedule();
  std::string schedule_file;  // of "file:PATH"
  // Its text; or the order that prices gave a schedule that asks for times.
  std::shared_ptr<const std::string> schedule_text;
  CsvForm file_form = {};  // of a file's order
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch_group = 0;  // Pipeline::group
  int zero = 0;
  std::int64_t shard_group = 0;  // ranks that share one copy of the states; 0: all of dp x cp
  bool sequence_parallel = false;
  Recompute recompute;
  std::string order = kUsualOrder;
  Overlap overlap;
  Offload offload;
  std::vector<std::int64_t> stage_layers;  // pp*virtual_stages entries in model order
  bool account_for_embedding = false;
  bool account_for_loss = false;
  bool mtp_apart = false;  // prediction modules stand in the chunk before the head's
  // Weight gradients of the head's product of so many micro-batches wait for the end of the passes.
  std::int64_t defer_head_wgrad = 0;
};

}  // namespace stepcast
