// SPDX-License-Identifier: Apache-2.0
#include "recipes/round_trip.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/data_folders.h"
#include "layout/keys.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "recipes/import.h"

namespace stepcast {
namespace {

using Leaves = std::map<std::string, SortedJson>;

constexpr int kMostRounds = 8;  // a remark can change the defaults of other keys

void add_leaves(const SortedJson& value, const std::string& path, Leaves& out) {
  // The ways to recompute are compared as one value.
  if (!value.is_object() || path == "layout.recompute") {
    out[path] = value;
    return;
  }
  for (const auto& [key, inner] : value.items()) {
    add_leaves(inner, path.empty() ? key : path + "." + key, out);
  }
}

// The keys of a resolved scenario; cluster and run are remarks as a whole.
Leaves leaves_of(SortedJson resolved) {
  for (const char* part : {"stepcast", "cluster", "run"}) resolved.erase(part);
  Leaves out;
  add_leaves(resolved, "", out);
  return out;
}

Result<SortedJson> resolve_document(SortedJson document, const DataFolders& folders) {
  const auto held = JsonDocument::from(std::move(document), "");
  const auto scenario = read_legal_scenario(*held, folders);
  if (!scenario) return failure(scenario.error());
  return to_json(*scenario);
}

bool decides_the_run(const std::string& path) {
  // A name, numerics, the balance of routing, and the way in which layers with experts are listed
  // do not change what a step costs.
  static const std::vector<std::string> harmless = {"model.name",
                                                    "model.norm_epsilon",
                                                    "model.rope_base",
                                                    "model.rope_scaling",
                                                    "model.rope_factor",
                                                    "model.moe.imbalance",
                                                    "model.moe.shared_experts",
                                                    "model.moe.dense_layers",
                                                    "model.moe.layer_every",
                                                    "model.moe.layer_list"};
  if (std::find(harmless.begin(), harmless.end(), path) != harmless.end()) return false;
  const auto says_so = [&](const Key* key) { return key->decides_the_run && path == key->path; };
  return path.starts_with("model.") || std::ranges::any_of(keys(), says_so);
}

bool is_usual(const SortedJson& value) {
  return value == false || value == SortedJson{{"mode", "none"}} || value == kUsualOrder ||
         value == "pretrain";
}

Setting remark(const std::string& path, const SortedJson& value) {
  return {path, json_text(value), ""};
}

class Trip {
 public:
  Trip(const RoundTrip& trip, const Scenario& scenario, const DataFolders& folders)
      : trip_(trip), folders_(folders), wanted_(leaves_of(to_json(scenario))) {
    input_.gpus = scenario.cluster.gpus();
    input_.layers = scenario.model.layers;
    input_.models_folder = folders.models;
    input_.file = trip.target;
  }

  // Notes what no file of this kind says, before anything is compared.
  Result<void> begin(const SortedJson& stated, const SortedJson& resolved) {
    const auto plain = read();
    if (!plain) return failure(plain.error());
    remarks_.push_back(remark("cluster", stated.at("cluster")));
    if (!plain->contains("model")) {
      const SortedJson& model = stated.at("model");
      remarks_.push_back(remark("model", model.is_string() ? model : resolved.at("model")));
      whole_model_ = true;
    }
    for (const char* part : {"run", "plan"}) {
      if (stated.contains(part)) remarks_.push_back(remark(part, stated.at(part)));
    }
    for (const std::string& path : trip_.left_to_program) {
      const auto found = wanted_.find(path);
      if (found != wanted_.end() && !is_usual(found->second)) {
        remarks_.push_back(remark(path, found->second));
      }
    }
    return {};
  }

  // Makes one comparison and returns how many remarks it added.
  Result<std::size_t> compare() {
    auto document = read();
    if (!document) return failure(document.error());
    const auto resolved = resolve_document(std::move(*document), folders_);
    if (!resolved) return failure(resolved.error());
    const Leaves found = leaves_of(*resolved);
    std::size_t added = 0;
    const auto add = [&](const std::string& path, const SortedJson& value) {
      std::erase_if(remarks_, [&](const Setting& old) { return old.path == path; });
      remarks_.push_back(remark(path, value));
      ++added;
    };
    for (const auto& [path, value] : wanted_) {
      const auto there = found.find(path);
      if (there == found.end() || there->second != value) add(path, value);
    }
    for (const auto& [path, value] : found) {
      if (wanted_.count(path) == 0) add(path, SortedJson());
    }
    return added;
  }

  Errors refusals() const {
    Errors errors;
    for (const Setting& setting : remarks_) {
      const auto& left = trip_.left_to_program;
      const bool elsewhere = std::find(left.begin(), left.end(), setting.path) != left.end();
      if (elsewhere || (whole_model_ && setting.path.starts_with("model"))) continue;
      if (!decides_the_run(setting.path)) continue;
      errors.push_back({ErrorCode::kIllegal,
                        fmt::format("{} cannot be said in {}", setting.value, trip_.target), "",
                        setting.path, "choose a value that it has a word for"});
    }
    return errors;
  }

  Result<TripResult> finish() {
    const auto text = trip_.write(remarks_);
    if (!text) return failure(text.error());
    return TripResult{*text, remarks_};
  }

 private:
  Result<SortedJson> read() {
    const auto text = trip_.write(remarks_);
    if (!text) return failure(text.error());
    input_.text = *text;
    const ImportedScenario imported = trip_.read(input_);
    if (!imported.errors.empty()) return failure(imported.errors);
    return scenario_document(imported);
  }

  const RoundTrip& trip_;
  const DataFolders& folders_;
  Leaves wanted_;
  ImportInput input_;
  std::vector<Setting> remarks_;
  bool whole_model_ = false;
};

}  // namespace

Result<TripResult> write_and_read_back(const RoundTrip& trip, const Scenario& scenario,
                                       const std::string& stated, const DataFolders& folders) {
  Trip way(trip, scenario, folders);
  if (const auto begun = way.begin(SortedJson::parse(stated), to_json(scenario)); !begun) {
    return failure(begun.error());
  }
  for (int round = 0; round < kMostRounds; ++round) {
    const auto added = way.compare();
    if (!added) return failure(added.error());
    if (const Errors errors = way.refusals(); !errors.empty()) return failure(errors);
    if (*added == 0) return way.finish();
  }
  return failure({ErrorCode::kIllegal, "what was written does not read back as the scenario",
                  trip.target, "", "this is an error of stepcast"});
}

}  // namespace stepcast
