// SPDX-License-Identifier: Apache-2.0
#include "report/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/cluster.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/keys.h"
#include "layout/legality.h"
#include "model/import_model.h"
#include "predict/figures.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

// Rows for people, and beside them exact values.
struct Rows {
  TextTable table;
  Json values = Json::array();
};

bool matches(const std::string& name, const std::string& filter) {
  return name.find(filter) != std::string::npos;
}

// Whether a layout of the model can be forecast.
std::string forecast_text(const Model& model, const ModelEntry& entry) {
  const std::string why = unsupported_in(model);
  if (!why.empty()) return "not yet: " + why;
  return entry.has_vision ? "yes, of its language model: vision is not modelled" : "yes";
}

Result<Rows> list_of_models(const DataFolders& folders, const std::string& filter) {
  const auto entries = list_models(folders.models);
  if (!entries) return failure(entries.error());
  Rows out{TextTable({{"model", Align::kLeft},
                      {"parameters"},
                      {"active"},
                      {"layers"},
                      {"hidden"},
                      {"heads"},
                      {"kv heads"},
                      {"ffn"},
                      {"vocabulary"},
                      {"positions"},
                      {"forecast", Align::kLeft}})};
  for (const ModelEntry& entry : *entries) {
    if (!matches(entry.name, filter)) continue;
    const auto model = find_model(entry.name, folders.models);
    if (!model) return failure(model.error());
    const ParameterCount count = count_parameters(*model);
    const auto text = [](std::int64_t value) { return fmt::format("{}", value); };
    out.table.add_row({entry.name, parameters_text(count.total()),
                       model->moe ? parameters_text(count.active) : "", text(model->layers),
                       text(model->hidden), text(model->heads), text(model->kv_heads),
                       text(model->ffn), text(model->vocab), text(model->max_positions),
                       forecast_text(*model, entry)});
    Json value;
    value["name"] = entry.name;
    value["parameters"] = count.total();
    value["active_parameters"] = count.active;
    value["layers"] = model->layers;
    value["hidden"] = model->hidden;
    value["heads"] = model->heads;
    value["kv_heads"] = model->kv_heads;
    value["head_dim"] = model->head_dim;
    value["ffn"] = model->ffn;
    value["vocab"] = model->vocab;
    value["max_positions"] = model->max_positions;
    if (model->moe) value["experts"] = model->moe->experts;
    value["forecast"] = unsupported_in(*model).empty();
    if (entry.has_vision) value["not_modelled"] = "vision";
    value["source"] = entry.source;
    out.values.push_back(std::move(value));
  }
  return out;
}

const char* network_of(const ClusterSpec& spec) {
  return name_of(spec.network.value_or(Network::kNone));
}

Result<Rows> list_of_clusters(const DataFolders& folders, const std::string& filter) {
  const auto specs = list_clusters(folders.topologies);
  if (!specs) return failure(specs.error());
  Rows out{TextTable({{"cluster", Align::kLeft},
                      {"GPU", Align::kLeft},
                      {"GPUs/node"},
                      {"scale-up/GPU"},
                      {"NICs/node"},
                      {"each"},
                      {"network", Align::kLeft}})};
  for (const ClusterSpec& spec : *specs) {
    if (!matches(spec.name, filter)) continue;
    out.table.add_row({spec.name, spec.accelerator.name, fmt::format("{}", spec.gpus_per_node),
                       rate_text(spec.scale_up_bandwidth), fmt::format("{}", spec.nics_per_node),
                       spec.nics_per_node > 0 ? rate_text(spec.nic_bandwidth) : "",
                       network_of(spec)});
    Json value;
    value["name"] = spec.name;
    value["title"] = spec.title;
    value["accelerator"] = spec.accelerator.name;
    value["gpus_per_node"] = spec.gpus_per_node;
    value["scale_up_bytes_per_s"] = spec.scale_up_bandwidth.value();
    value["nvlink_domain_nodes"] = spec.nvlink_domain_nodes;
    value["nics_per_node"] = spec.nics_per_node;
    value["nic_bytes_per_s"] = spec.nic_bandwidth.value();
    value["network"] = network_of(spec);
    value["oversubscription"] = spec.oversubscription;
    value["sources"] = spec.sources;
    out.values.push_back(std::move(value));
  }
  return out;
}

std::string tflops_text(std::optional<FlopsPerSecond> rate) {
  return rate ? number_text(rate->value() / 1e12) : "";
}

Result<Rows> list_of_gpus(const DataFolders& folders, const std::string& filter) {
  const auto gpus = list_accelerators(folders.topologies);
  if (!gpus) return failure(gpus.error());
  Rows out{TextTable({{"GPU", Align::kLeft},
                      {"title", Align::kLeft},
                      {"memory GiB"},
                      {"bandwidth"},
                      {"bf16 TFLOP/s"},
                      {"fp8 TFLOP/s"},
                      {"SMs"},
                      {"W"},
                      {"profile", Align::kLeft}})};
  for (const Accelerator& gpu : *gpus) {
    if (!matches(gpu.name, filter)) continue;
    out.table.add_row({gpu.name, gpu.title, gib_text(gpu.memory), rate_text(gpu.memory_bandwidth),
                       tflops_text(gpu.peak(DataType::kBf16)),
                       tflops_text(gpu.peak(DataType::kFp8)), fmt::format("{}", gpu.sm_count),
                       number_text(gpu.power_w), gpu.profile});
    Json value;
    value["name"] = gpu.name;
    value["title"] = gpu.title;
    value["memory_bytes"] = gpu.memory;
    value["memory_bandwidth_bytes_per_s"] = gpu.memory_bandwidth.value();
    for (const auto& [type, peak] : gpu.dense_peak) {
      value["dense_peak_flops_per_s"][name_of(type)] = peak.value();
    }
    value["sm_count"] = gpu.sm_count;
    value["power_w"] = gpu.power_w;
    if (!gpu.profile.empty()) value["profile"] = gpu.profile;
    value["sources"] = gpu.sources;
    out.values.push_back(std::move(value));
  }
  return out;
}

Result<Rows> list_of_schedules(const DataFolders&, const std::string& filter) {
  Rows out{TextTable({{"schedule", Align::kLeft},
                      {"bubble", Align::kLeft},
                      {"micro-batches in memory, stage 0", Align::kLeft},
                      {"source", Align::kLeft}})};
  for (const Schedule* schedule : schedules()) {
    if (!schedule->is_supported() || !matches(schedule->name, filter)) continue;
    out.table.add_row({schedule->name, schedule->bubble, schedule->in_flight, schedule->source});
    Json value;
    value["name"] = schedule->name;
    value["bubble"] = schedule->bubble;
    value["in_flight"] = schedule->in_flight;
    value["source"] = schedule->source;
    out.values.push_back(std::move(value));
  }
  return out;
}

Result<Rows> list_of_keys(const DataFolders&, const std::string& filter) {
  Rows out{TextTable({{"key", Align::kLeft},
                      {"value", Align::kLeft, false, true},
                      {"default", Align::kLeft, false, true},
                      {"flag", Align::kLeft},
                      {"what it says", Align::kLeft, false, true}})};
  for (const Key* key : keys()) {
    if (!matches(key->path, filter)) continue;
    const char* flag = key->flag.name == nullptr ? "" : key->flag.name;
    out.table.add_row({key->path, key->type->accepts(), key->fallback.text(), flag, key->help});
    Json value;
    value["key"] = key->path;
    value["value"] = key->type->accepts();
    value["default"] = key->fallback.text();
    if (key->flag.name != nullptr) value["flag"] = flag;
    value["help"] = key->help;
    value["searched"] = key->search != nullptr;
    out.values.push_back(std::move(value));
  }
  return out;
}

Result<Rows> list_of_figures(const DataFolders&, const std::string& filter) {
  Rows out{TextTable({{"figure", Align::kLeft, false, true},
                      {"required as", Align::kLeft, false, true},
                      {"what it says", Align::kLeft, false, true}})};
  for (const Figure& figure : figures()) {
    if (!matches(figure.key, filter)) continue;
    const char* required = figure.required == nullptr ? "" : figure.required;
    out.table.add_row({figure.key, required, figure.words});
    Json value{{"figure", figure.key}, {"help", figure.words}};
    if (figure.required != nullptr) value["required_as"] = required;
    out.values.push_back(std::move(value));
  }
  return out;
}

struct Topic {
  CatalogTopic words;
  Result<Rows> (*list)(const DataFolders&, const std::string& filter);
};

constexpr Topic kTopics[] = {
    {{"models", "models, with exact parameter counts"}, list_of_models},
    {{"clusters", "clusters"}, list_of_clusters},
    {{"gpus", "accelerators"}, list_of_gpus},
    {{"schedules", "pipeline schedules"}, list_of_schedules},
    {{"keys", "keys of training and layout"}, list_of_keys},
    {{"figures", "figures of a forecast"}, list_of_figures},
};

}  // namespace

std::vector<CatalogTopic> catalog_topics() {
  std::vector<CatalogTopic> out;
  for (const Topic& topic : kTopics) out.push_back(topic.words);
  return out;
}

Result<Listing> list_catalog(const std::string& name, const DataFolders& folders,
                             const std::string& filter) {
  const auto* topic =
      std::ranges::find_if(kTopics, [&](const Topic& one) { return name == one.words.name; });
  if (topic == std::end(kTopics)) {
    std::vector<std::string> names;
    for (const Topic& one : kTopics) names.emplace_back(one.words.name);
    return failure({ErrorCode::kNotFound, fmt::format("'{}' is not listed", name), "", "topic",
                    one_of(names)});
  }
  auto rows = topic->list(folders, filter);
  if (!rows) return failure(rows.error());
  if (rows->table.empty() && !filter.empty()) {
    return failure({ErrorCode::kNotFound, fmt::format("no name contains '{}'", filter), "",
                    "FILTER", fmt::format("stepcast show {} lists all", name)});
  }
  return Listing{std::move(rows->table), json_file(rows->values, 1)};
}

}  // namespace stepcast
