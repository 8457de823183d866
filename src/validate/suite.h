// SPDX-License-Identifier: Apache-2.0
// A suite: recorded training runs with their scenario and what was measured (format 1;
// docs/formats/suite.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

// How the source of a case states its figures; changes no prediction.
struct Convention {
  enum class Memory { kAllocated, kReserved, kDevice };
  bool causal_attention = false;            // attention FLOPs halved
  bool logits = true;                       // the output projection counts
  bool hardware_flops = false;              // recomputed FLOPs count
  bool bf16_peak = false;                   // MFU against the bf16 peak, whatever the precision
  std::optional<FlopsPerSecond> peak = {};  // MFU against this figure
  Memory memory = Memory::kAllocated;
  bool steady_bubble = false;
};

struct Measured {
  std::optional<double> step_time_s = {};
  std::optional<double> tokens_per_s_per_gpu = {};
  std::optional<double> model_tflops_per_gpu = {};
  std::optional<double> mfu = {};
  std::optional<double> peak_memory_bytes = {};
  std::optional<double> bubble_fraction = {};
};

// The largest errors that a case may have; those of the bubble are a difference.
struct CaseLimits {
  std::optional<double> step_time = {};
  std::optional<double> peak_memory = {};
  std::optional<double> bubble_fraction = {};

  bool any() const { return step_time || peak_memory || bubble_fraction; }
};

struct SuiteCase {
  std::string id;
  std::string source;
  std::vector<std::string> tags;
  std::vector<std::string> assumed;  // what the source leaves open and was filled in
  std::string notes;
  Convention convention;
  Measured measured;
  CaseLimits limits;     // of the case, else of its suite
  std::string scenario;  // JSON text
  std::string group;     // equal for cases of equal model, cluster and training
};

struct Suite {
  std::string name;
  std::string file;
  std::vector<SuiteCase> cases;
};

Result<Suite> load_suite(const std::string& file);

// The file of a shipped suite's name; a path stays. Errors: there is none of this name.
Result<std::string> suite_file(const std::string& name_or_path, const std::string& folder);

}  // namespace stepcast
