// SPDX-License-Identifier: Apache-2.0
// A hand-made scenario, so that alignment is tested without a forecast.
#pragma once

#include "layout/scenario.h"

namespace stepcast::testing {

// 2 GPUs of 100 TFLOP/s in bf16; 4 sequences of 8 tokens. One layer, no recompute.
inline Scenario made_case_scenario() {
  Scenario scenario;
  scenario.model.layers = 1;
  scenario.model.hidden = 16;
  scenario.model.heads = 2;
  scenario.model.kv_heads = 2;
  scenario.model.head_dim = 8;
  scenario.model.ffn = 64;
  scenario.model.vocab = 32;
  scenario.model.max_positions = 8;
  scenario.cluster.spec.gpus = 2;
  scenario.cluster.spec.accelerator.dense_peak[DataType::kBf16] = FlopsPerSecond(100e12);
  scenario.cluster.spec.accelerator.dense_peak[DataType::kFp16] = FlopsPerSecond(50e12);
  scenario.training.global_batch = 4;
  scenario.training.sequence_length = 8;
  scenario.layout.dp = 2;
  scenario.layout.micro_batch = 2;
  return scenario;
}

}  // namespace stepcast::testing
