// SPDX-License-Identifier: Apache-2.0
// A forecast written by hand: two stages of two ranks, everything in round numbers.
#pragma once

#include "layout/scenario.h"
#include "predict/prediction.h"

namespace stepcast::testing {

inline Scenario made_scenario() {
  Scenario scenario;
  scenario.model.name = "made";
  scenario.cluster.spec.name = "made-cluster";
  scenario.cluster.spec.gpus = 4;
  scenario.cluster.spec.accelerator.title = "Made \"GPU\"";
  scenario.cluster.spec.accelerator.memory = 1000;
  scenario.training.global_batch = 8;
  scenario.training.sequence_length = 16;
  scenario.layout.pp = 2;
  scenario.layout.dp = 2;
  return scenario;
}

// A step of 10 s: compute 6, optimizer 1, exposed dp 1, bubble 2. MFU 0.4: 4 s ideal.
inline Prediction made_prediction() {
  Prediction out;
  out.step_time = Seconds(10);
  out.step_time_low = Seconds(9);
  out.step_time_high = Seconds(11);
  out.tokens_per_s = 12.8;
  out.tokens_per_s_per_gpu = 3.2;
  out.mfu = 0.4;
  out.hfu = 0.4;
  out.bubble_fraction = 0.25;
  out.time.compute = Seconds(6);
  out.time.optimizer = Seconds(1);
  out.time.exposed_dp = Seconds(1);
  out.time.bubble = Seconds(2);
  out.waterfall.ideal = Seconds(4);
  out.waterfall.gemm_inefficiency = Seconds(2);
  out.waterfall.optimizer = Seconds(1);
  out.waterfall.rest.exposed_dp = Seconds(1);
  out.waterfall.rest.bubble = Seconds(2);
  out.provenance = {0.5, 0.25, 0, 0.25};
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    RankClass rank_class;
    rank_class.ranks = {RankId(2 * stage + 1), RankId(2 * stage)};
    rank_class.stage = stage;
    rank_class.memory = {10, 20, 30, 40 - 10 * stage, 0, 0};
    rank_class.peak_memory = total(rank_class.memory);
    rank_class.reserved_bytes = rank_class.peak_memory + 10;
    rank_class.framework_bytes = 5;
    rank_class.time = out.time;
    out.rank_classes.push_back(rank_class);
  }
  out.peak_memory = 100;
  out.peak_reserved = 110;
  out.peak_device = 115;
  out.device_memory = 1000;
  out.critical_path = {{"forward, stage 0", Seconds(6)}, {"waiting", Seconds(4)}};
  return out;
}

}  // namespace stepcast::testing
