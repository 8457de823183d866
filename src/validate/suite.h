// SPDX-License-Identifier: Apache-2.0
// A suite: recorded training runs with their scenario and what was measured (format 1;
// docs/formats/suite.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json_field.h"
#include "core/json_tree.h"
#include "core/quantity.h"
#include "core/result.h"
#include "validate/case_figures.h"

namespace stepcast {

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

  static auto fields() {
    using F = Convention;
    return std::tuple{
        json_field("attention", &F::causal_attention)
            .named(words<"full", "causal">)
            .says("FLOPs of attention are counted in full, or halved"),
        json_field("logits", &F::logits).says("the output projection counts"),
        json_field("flops", &F::hardware_flops)
            .named(words<"model", "hardware">)
            .says("FLOPs of the model, or with recomputed work"),
        json_field("peak", &F::peak)
            .says("MFU is a share of this peak; that of the precision unless stated"),
        json_field("memory", &F::memory)
            .says("memory of tensors, reserved by the allocator, or taken from the device"),
        json_field("bubble", &F::steady_bubble)
            .named(words<"span", "steady">)
            .says("the bubble is over the span of a rank, or in the steady state")};
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
    return std::tuple{
        json_field("id", &F::id).required().says("unique within the suite"),
        json_field("source", &F::source).required().says("where the run was reported"),
        json_field("tags", &F::tags).says("for rows of the summary, `--tag` and `--without-tag`"),
        json_field("assumed", &F::assumed)
            .says("what the source does not state and was filled in: key paths or free text"),
        json_field("notes", &F::notes).says("for people"),
        json_field("convention", &F::convention).says("how the source states its figures"),
        json_field("measured", &F::measured).required().says("one or more of these figures"),
        json_field("tolerance", &F::limits).says("what the errors of this case may be at most"),
        json_field("scenario", &F::scenario)
            .required()
            .says("a scenario, forecast as `predict` forecasts it: `check` fills nothing in")};
  }
};

struct Suite {
  std::string name;
  std::string file;
  CaseErrors limits;  // of the cases that do not limit themselves
  std::vector<SuiteCase> cases;

  static auto fields() {
    using F = Suite;
    return std::tuple{
        json_field("name", &F::name).says("the file's name unless stated"),
        json_field("tolerance", &F::limits)
            .says("limits of all cases that measured the figure and do not limit it themselves"),
        json_field("cases", &F::cases).required().says("the recorded runs")};
  }
};

Result<Suite> load_suite(const std::string& file);

// The file of a shipped suite's name; a path stays. Errors: there is none of this name.
Result<std::string> suite_file(const std::string& name_or_path, const std::string& folder);

}  // namespace stepcast
