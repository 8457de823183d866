// SPDX-License-Identifier: Apache-2.0
// The usual order in which ways to parallelise are tried, simplest first. A rung is a part of the
// space of layouts; a new rung is an entry of its table.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "layout/training.h"
#include "plan/value_range.h"

namespace stepcast {

struct ClusterSpec;

struct Rung {
  const char* id;                      // "zero-1"
  const char* title;                   // "ZeRO-1"
  const char* holds;                   // why it needs its memory: "every GPU holds a whole copy"
  bool one_gpu;                        // of the cluster; else all
  std::vector<TrainingMode> modes;     // of scenarios that climb it
  std::optional<TrainingMode> mode;    // that it is about, whatever the scenario's
  std::optional<Framework> framework;  // where the scenario states none; else the layout decides
  std::vector<ValueRange> (*part)(const ClusterSpec&);
  bool of_experts = false;  // models without experts pass it by
};

// Lists the rungs from the lowest one up.
const std::vector<Rung>& ladder();

// The one of this id, which exists.
const Rung& rung_named(std::string_view id);

}  // namespace stepcast
