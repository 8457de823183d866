// SPDX-License-Identifier: Apache-2.0
#include "layout/scenario.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/row_types.h"
#include "layout/data_folders.h"
#include "layout/legality.h"
#include "layout/other_jobs.h"
#include "layout/read_scenario.h"
#include "layout/scenario_input.h"
#include "model/import_model.h"

namespace stepcast {
namespace {

// Errors of the file behind a name keep that file; those about the name itself are the scenario's.
void add_errors_of_name(JsonDocument& document, Errors errors) {
  for (Error& error : errors) {
    if (error.path.empty() && error.file.empty()) error.path = "model";
    document.add(std::move(error));
  }
}

std::optional<Model> read_scenario_model(ObjectReader& object, JsonDocument& document,
                                         const DataFolders& folders) {
  const auto value = object.required("model");
  if (!value) return std::nullopt;
  if (value->is_text()) {
    auto model = find_model(*value->text(), folders.models);
    if (model) return std::move(*model);
    add_errors_of_name(document, model.error());
    return std::nullopt;
  }
  const std::size_t before = document.errors().size();
  Model model = read_model(*value);
  return document.errors().size() == before ? std::optional(std::move(model)) : std::nullopt;
}

std::optional<Cluster> read_scenario_cluster(ObjectReader& object, JsonDocument& document,
                                             const DataFolders& folders) {
  const auto value = object.required("cluster");
  if (!value) return std::nullopt;
  const std::size_t before = document.errors().size();
  Cluster cluster = read_cluster(*value, folders.topologies);
  return document.errors().size() == before ? std::optional(std::move(cluster)) : std::nullopt;
}

// Who reads a scenario, and for what.
struct Reading {
  const OpenKeys& open;
  bool to_forecast;
  const Cluster* given = nullptr;  // the part of a fabric that another job has
};

Result<OpenScenario> read_document(JsonDocument& document, const DataFolders& folders,
                                   const Reading& reading);

// Jobs beside this one, which keeps the rest of the cluster. They need it whole, and a search would
// replay them for every layout.
std::vector<OtherJob> read_jobs_beside(ObjectReader& object, JsonDocument& document,
                                       const DataFolders& folders, const Reading& reading,
                                       std::optional<Cluster>& cluster) {
  const auto list = object.value("other_jobs");
  if (!list) return {};
  if (reading.given != nullptr || reading.open) {
    list->fail(ErrorCode::kNotSupported,
               reading.open ? "a search beside other jobs is not supported yet"
                            : "a job beside another one has no other jobs of its own",
               "leave it out");
    return {};
  }
  if (!cluster) return {};
  return read_other_jobs(*list, document, *cluster, [&](JsonDocument& other, const Cluster& part) {
    const OpenKeys none;
    auto read = read_document(other, folders, {none, reading.to_forecast, &part});
    return read ? Result<Scenario>(std::move(read->scenario))
                : Result<Scenario>(failure(read.error()));
  });
}

Result<OpenScenario> read_document(JsonDocument& document, const DataFolders& folders,
                                   const Reading& reading) {
  const OpenKeys& open = reading.open;
  const bool to_forecast = reading.to_forecast;
  ObjectReader object(document.root());
  if (!document.ok() || !object.is_format("stepcast", 1)) return failure(document.errors());

  OpenScenario out;
  auto model = read_scenario_model(object, document, folders);
  std::optional<Cluster> cluster;
  if (reading.given != nullptr) {
    object.ignore("cluster");
    object.ignore("software");
    cluster = *reading.given;
  } else {
    cluster = read_scenario_cluster(object, document, folders);
  }
  const std::string profile = object.text("profile").value_or("");
  if (const auto value = object.value("software"); value && reading.given == nullptr) {
    const NcclSettings nccl = read_software(*value);
    if (cluster) cluster->spec.nccl = nccl;
  }
  std::shared_ptr<const Cluster> fabric;
  if (cluster && object.has("other_jobs")) fabric = std::make_shared<const Cluster>(*cluster);
  std::vector<OtherJob> others = read_jobs_beside(object, document, folders, reading, cluster);
  if (const auto value = object.required("training")) {
    read_keys(*value, training_keys(), out.stated);
  }
  if (const auto value = object.value("layout")) {
    read_keys(*value, layout_keys(), out.stated);
  }
  std::optional<RunSettings> run;
  if (const auto value = object.value("run")) run = read_run(*value);
  if (const auto value = object.value("plan")) out.plan = read_plan(*value);
  object.finish();

  Findings findings(document.errors());
  if (!model) findings.distrust("model");
  if (!cluster) findings.distrust("cluster");
  if (open) {
    for (const std::string& path : open(out.stated)) findings.distrust(path);
  }
  out.scenario = resolve(model ? std::move(*model) : Model{},
                         cluster ? std::move(*cluster) : Cluster{}, out.stated);
  out.scenario.profile = profile;
  if (!others.empty()) {
    out.scenario.fabric = std::move(fabric);
    out.scenario.other_jobs = std::move(others);
  }
  out.scenario.run = run;
  check_legality(out.scenario, out.stated, findings);
  if (to_forecast) check_support(out.scenario, findings);
  document.add(findings.errors());
  if (!document.ok()) return failure(document.errors());
  return out;
}

Result<Scenario> scenario_of(Result<OpenScenario> open) {
  if (!open) return failure(open.error());
  return std::move(open->scenario);
}

std::int64_t adapters_of(const Scenario& s, std::int64_t expert_sets) {
  return count_adapters(s.model, s.training.lora_rank, s.training.lora_targets,
                        {s.rules.adapts_packed_matrices, expert_sets});
}

}  // namespace

std::int64_t Scenario::adapter_elements() const {
  if (!model.moe) return adapters_of(*this, 0);
  return adapters_of(*this, rules.shares_expert_adapters ? layout.ep : model.moe->experts);
}

std::int64_t Scenario::active_adapter_elements() const {
  return adapters_of(*this, model.moe ? model.moe->top_k : 0);
}

std::int64_t Scenario::padded_vocab() const {
  const std::int64_t multiple =
      (model.vocab_multiple > 0 ? model.vocab_multiple : rules.vocab_multiple) * layout.tp;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

Result<Scenario> read_scenario(JsonDocument& document, const DataFolders& folders) {
  return scenario_of(read_document(document, folders, {{}, true}));
}

Result<Scenario> read_legal_scenario(JsonDocument& document, const DataFolders& folders) {
  return scenario_of(read_document(document, folders, {{}, false}));
}

Result<OpenScenario> read_open_scenario(JsonDocument& document, const DataFolders& folders,
                                        const OpenKeys& open) {
  return read_document(document, folders, {open, true});
}

Rows DataFolders::fields() {
  using F = DataFolders;
  static constexpr Row all[] = {row<&F::models>("models").required(),
                                row<&F::topologies>("topologies").required(),
                                row<&F::profiles>("profiles").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
