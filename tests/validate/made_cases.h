// SPDX-License-Identifier: Apache-2.0
// Hand-made scenarios and results, so that alignment and statistics are tested without a forecast.
#pragma once

#include <string>

#include "validate/align.h"

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

// A case of suite "s" that was predicted at `predicted` seconds and measured at `measured`.
inline CaseResult made_case(std::string id, double predicted, double measured,
                            std::string group = "g") {
  CaseResult out;
  out.suite = "s";
  out.id = std::move(id);
  out.group = std::move(group);
  out.measured.step_time_s = measured;
  out.predicted = CaseFigures{.step_time_s = predicted,
                              .step_time_low_s = 0.9 * predicted,
                              .step_time_high_s = 1.1 * predicted,
                              .peak_memory_bytes = 100};
  out.errors.step_time = (predicted - measured) / measured;
  out.covered = measured >= 0.9 * predicted && measured <= 1.1 * predicted;
  return out;
}

inline CaseResult failed_case(std::string id, std::string why = "tp: 3 is illegal") {
  CaseResult out;
  out.suite = "s";
  out.id = std::move(id);
  out.measured.step_time_s = 1;
  out.failed = std::move(why);
  return out;
}

inline CaseResult unsupported_case(std::string id, std::string why = "not supported yet") {
  CaseResult out = failed_case(std::move(id), std::move(why));
  out.not_supported = true;
  return out;
}

}  // namespace stepcast::testing
