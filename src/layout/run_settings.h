// SPDX-License-Identifier: Apache-2.0
// The object `run` of a scenario as the file states it: how long to train, on what terms, and what
// interrupts it. Defaults depend on the cluster and on price lists: economics/run_terms.h.
#pragma once

#include <cstdint>
#include <optional>

#include "core/json_tree.h"
#include "core/quantity.h"

namespace stepcast {

struct CheckpointSettings {
  std::optional<Bytes> bytes;               // all ranks together
  std::optional<BytesPerSecond> bandwidth;  // all ranks together, while training stands still
  std::optional<Seconds> interval;          // of training between two; absent: the best
};

// Nodes that go on working, but slowly, until somebody notices.
struct StragglerSettings {
  double per_node_day = 0;
  double slowdown = 0;  // 0.3: a step takes 1.3 times as long while there is one
  Seconds detection;    // until it is replaced
};

// Wrong results that stop nothing: a check finds them, and all since the last check that passed is
// done again.
struct CorruptionSettings {
  double per_node_day = 0;
  Seconds check;       // of training between two checks
  Seconds check_time;  // training stands still for so long
};

// Nodes that the provider takes back (spot).
struct PreemptionSettings {
  double per_node_day = 0;
  Seconds notice;  // between the warning and the end
};

struct RunSettings {
  std::optional<double> tokens;  // also where examples, epochs and tokens of an example are given
  std::optional<double> price_per_gpu_hour;     // dollars
  std::optional<std::int64_t> rented_together;  // GPUs; absent: as the price says, else a node's
  std::optional<Seconds> deadline;
  std::optional<double> budget;                 // dollars
  std::optional<double> failures_per_node_day;  // of hardware: grows with the nodes
  double failures_per_day = 0;                  // of the job (software, people): does not
  CheckpointSettings checkpoint;
  std::optional<Seconds>
      restart;  // from the failure until training goes on, without a spare's wait
  std::int64_t spare_nodes = 0;
  Seconds repair;        // until a lost node or its replacement is back; 0: at once
  bool elastic = false;  // goes on with fewer replicas meanwhile, instead of waiting
  std::optional<StragglerSettings> stragglers;
  std::optional<PreemptionSettings> preemption;
  std::optional<CorruptionSettings> silent_corruption;
  std::optional<double> pue;  // energy of the building per energy of the machines
};

SortedJson to_json(const RunSettings& run);  // the keys that are given

}  // namespace stepcast
