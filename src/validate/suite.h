// SPDX-License-Identifier: Apache-2.0
// A suite: recorded training runs with their scenario and what was measured (format 1;
// docs/formats/suite.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"
#include "core/json_field.h"
#include "core/json_tree.h"
#include "core/quantity.h"
#include "core/result.h"
#include "validate/case_figures.h"

namespace stepcast {

// An MFU is stated against this: the peak of the scenario's precision, that of bf16, or a rate.
struct StatedPeak {
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

  static auto fields() {
    using F = Convention;
    return std::tuple{json_field("attention", &F::causal_attention).named(words<"full", "causal">),
                      json_field("logits", &F::logits),
                      json_field("flops", &F::hardware_flops).named(words<"model", "hardware">),
                      json_field("peak", &F::peak),
                      json_field("memory", &F::memory),
                      json_field("bubble", &F::steady_bubble).named(words<"span", "steady">)};
  }
};

struct SuiteCase {
  std::string id;
  std::string source;
  std::vector<std::string> tags;
  std::vector<std::string> assumed;  // what the source leaves open and was filled in
  std::string notes;
  Convention convention;
  CaseFigures measured;
  CaseErrors limits;  // the largest errors of the case, else those of its suite
  SortedJson scenario;
  std::string group;  // equal for cases of equal model, cluster and training

  void check(const JsonValue& value) const;

  static auto fields() {
    using F = SuiteCase;
    return std::tuple{json_field("id", &F::id).required(),
                      json_field("source", &F::source).required(),
                      json_field("tags", &F::tags),
                      json_field("assumed", &F::assumed),
                      json_field("notes", &F::notes),
                      json_field("convention", &F::convention),
                      json_field("measured", &F::measured).required(),
                      json_field("tolerance", &F::limits),
                      json_field("scenario", &F::scenario).required()};
  }
};

struct Suite {
  std::string name;
  std::string file;
  CaseErrors limits;  // of the cases that do not limit themselves
  std::vector<SuiteCase> cases;

  static auto fields() {
    using F = Suite;
    return std::tuple{json_field("name", &F::name), json_field("tolerance", &F::limits),
                      json_field("cases", &F::cases).required()};
  }
};

Result<Suite> load_suite(const std::string& file);

// The file of a shipped suite's name; a path stays. Errors: there is none of this name.
Result<std::string> suite_file(const std::string& name_or_path, const std::string& folder);

}  // namespace stepcast
