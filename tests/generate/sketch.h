// SPDX-License-Identifier: Apache-2.0
// A scenario while it is drawn: the file so far, and what later draws have to go with.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cluster/cluster.h"
#include "generate/draw.h"
#include "model/model.h"

namespace stepcast {

struct FrameworkTraits;
struct Schedule;
}  // namespace stepcast

namespace stepcast::generate {

struct Sketch {
  nlohmann::json file = {{"stepcast", 1}};
  Model model;
  Cluster cluster;
  const FrameworkTraits* framework = nullptr;
  bool forecasts = true;
  // Experts whose kernels activate and cast, which few draws would come to: Blackwell, a framework
  // that has them, and scales of blocks.
  bool fuses_experts = false;

  std::int64_t tp = 1, cp = 1, pp = 1, dp = 1, ep = 1, etp = 1;
  std::int64_t chunks = 1;         // of each stage
  std::int64_t micro_batches = 1;  // of a replica
  int zero = 0;
  const Schedule* schedule = nullptr;
  DataType precision = DataType::kBf16;
  bool unfused = false;
  bool sequence_parallel = false;
  bool adapters = false;
  bool full_recompute = false;
  bool pairs_exchanges = false;  // overlap.ep
  bool offloads = false;         // states

  // Sets the key at a dotted path.
  void set(const std::string& path, nlohmann::json value);
  bool states(const std::string& path) const;
  DataType wide() const;  // of activations and parameters
};

// Each fills its part of the file, in this order. Those of model and cluster give false where the
// product refuses what they drew.
bool draw_model(Draw& draw, Sketch& sketch);
bool draw_cluster(Draw& draw, Sketch& sketch);
void draw_degrees(Draw& draw, Sketch& sketch);  // also framework, precision, schedule
void draw_mode_and_attention(Draw& draw, Sketch& sketch);
void draw_layout(Draw& draw, Sketch& sketch);
void draw_training(Draw& draw, Sketch& sketch);
void draw_run(Draw& draw, Sketch& sketch);
void draw_other_jobs(Draw& draw, Sketch& sketch);  // last: the other one is like this one
// Draws what experts do beside their exchanges, behind all else.
void draw_within_exchanges(Draw& draw, Sketch& sketch);

}  // namespace stepcast::generate
