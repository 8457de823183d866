// SPDX-License-Identifier: Apache-2.0
// A suite: recorded training runs with their scenario and what was measured (format 1;
// docs/formats/suite.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json_fwd.h"
#include "core/json_tree.h"
#include "core/quantity.h"
#include "core/result.h"
#include "validate/case_figures.h"
#include "validate/collective_case.h"
#include "validate/recorded_run.h"

namespace stepcast {

struct Rows;  // core/rows.h

// An MFU is stated against this: the peak of the scenario's precision, that of bf16, or a rate.
struct StatedPeak {
  static constexpr const char* kAccepts = "precision, bf16 or a rate as \"989 TFLOP/s\"";
  bool bf16 = false;
  std::optional<FlopsPerSecond> rate = {};
};
bool read_json(const JsonValue& value, StatedPeak& out);

// How the source of a case states its figures; changes no prediction.
struct Convention {
  enum class Memory { kAllocated, kReserved, kDevice };
  friend constexpr const char* name_of(Memory stated) {
    constexpr const char* kNames[] = {"allocated", "reserved", "device"};
    return kNames[static_cast<std::size_t>(stated)];
  }
  bool causal_attention = false;  // attention FLOPs halved
  bool logits = true;             // the output projection counts
  bool hardware_flops = false;    // recomputed FLOPs count
  StatedPeak peak = {};
  Memory memory = Memory::kAllocated;
  bool steady_bubble = false;

  static Rows fields();
};

struct SuiteCase {
  std::string id;
  std::string source;
  std::string publisher;  // who ran it; that of its suite unless stated
  std::vector<std::string> tags;
  std::vector<std::string> assumed;  // what the source leaves open and was filled in
  std::string notes;
  Convention convention;
  CaseFigures measured;
  std::vector<EarlierRun> earlier;  // the first first
  CaseErrors limits;                // the largest errors of the case, else those of its suite
  std::optional<double> most_step_time_s = {};  // as the machine was accepted (docs/acceptance.md)
  CollectiveCase collective;                    // of no ranks where a step was measured
  SortedJson scenario;
  std::string group;        // equal for cases of equal model, cluster and training
  std::string fingerprint;  // of the scenario as the suite states it

  void check(const JsonValue& value) const;

  static Rows fields();
};

struct Suite {
  std::string name;
  std::string file;
  std::string publisher;  // of the cases that do not state theirs
  CaseErrors limits;      // of the cases that do not limit themselves
  std::vector<SuiteCase> cases;

  static Rows fields();
};

Result<Suite> load_suite(const std::string& file);

// The file of a shipped suite's name; a path stays. Errors: there is none of this name.
Result<std::string> suite_file(const std::string& name_or_path, const std::string& folder);

}  // namespace stepcast
