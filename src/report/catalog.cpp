// SPDX-License-Identifier: Apache-2.0
#include "report/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/cluster.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "economics/prices.h"
#include "layout/data_folders.h"
#include "layout/keys.h"
#include "layout/legality.h"
#include "model/import_model.h"
#include "model/model.h"
#include "predict/figures.h"
#include "report/document_keys.h"
#include "report/number_text.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// A list says this of one of its items: cells under titles where people read, and exact values
// under keys in JSON.
struct CatalogRow {
  std::vector<Column> columns;
  std::vector<std::string> cells;
  Json values = Json::object();

  void show(Column column, std::string text) {
    columns.push_back(std::move(column));
    cells.push_back(std::move(text));
  }
  // Both alike.
  void say(const char* title, const char* key, const std::string& text, bool own_words = false) {
    show({title, Align::kLeft, false, own_words}, text);
    values[key] = text;
  }
  void say(const char* title, const char* key, std::int64_t number) {
    show({title}, fmt::format("{}", number));
    values[key] = number;
  }
  // A text that may be missing: the table has an empty cell.
  void say_if_any(Column column, const char* key, const char* text) {
    show(std::move(column), text == nullptr ? "" : text);
    if (text != nullptr) values[key] = text;
  }
};
using TableRows = std::vector<CatalogRow>;

bool matches(const std::string& name, const std::string& filter) {
  return name.find(filter) != std::string::npos;
}

// Whether a layout of the model can be forecast.
std::string forecast_text(const Model& model, const ModelEntry& entry) {
  const std::string why = unsupported_in(model);
  if (!why.empty()) return "not yet: " + why;
  return entry.has_vision ? "yes, of its language model: vision is not modelled" : "yes";
}

CatalogRow row_of(const ModelEntry& entry, const Model& model) {
  const ParameterCount count = count_parameters(model);
  CatalogRow row;
  row.say("model", "name", entry.name);
  row.show({"parameters"}, parameters_text(count.total()));
  row.values["parameters"] = count.total();
  row.show({"active"}, model.moe ? parameters_text(count.active) : "");
  row.values["active_parameters"] = count.active;
  row.say("layers", "layers", model.layers);
  row.say("hidden", "hidden", model.hidden);
  row.say("heads", "heads", model.heads);
  row.say("kv heads", "kv_heads", model.kv_heads);
  row.values["head_dim"] = model.head_dim;
  row.say("ffn", "ffn", model.ffn);
  row.say("vocabulary", "vocab", model.vocab);
  row.say("positions", "max_positions", model.max_positions);
  if (model.moe) row.values["experts"] = model.moe->experts;
  row.show({"forecast", Align::kLeft}, forecast_text(model, entry));
  row.values["forecast"] = unsupported_in(model).empty();
  if (entry.has_vision) row.values["not_modelled"] = "vision";
  row.values["source"] = entry.source;
  return row;
}

Result<TableRows> list_of_models(const DataFolders& folders, const std::string& filter) {
  const auto entries = list_models(folders.models);
  if (!entries) return failure(entries.error());
  TableRows out;
  for (const ModelEntry& entry : *entries) {
    if (!matches(entry.name, filter)) continue;
    const auto model = find_model(entry.name, folders.models);
    if (!model) return failure(model.error());
    out.push_back(row_of(entry, *model));
  }
  return out;
}

CatalogRow row_of(const ClusterSpec& spec) {
  CatalogRow row;
  row.say("cluster", "name", spec.name);
  row.values["title"] = spec.title;
  row.say("GPU", "accelerator", spec.accelerator.name);
  row.say("GPUs/node", "gpus_per_node", spec.gpus_per_node);
  row.show({"scale-up/GPU"}, rate_text(spec.scale_up_bandwidth));
  row.values["scale_up_bytes_per_s"] = spec.scale_up_bandwidth.value();
  row.values["nvlink_domain_nodes"] = spec.nvlink_domain_nodes;
  row.say("NICs/node", "nics_per_node", spec.nics_per_node);
  row.show({"each"}, spec.nics_per_node > 0 ? rate_text(spec.nic_bandwidth) : "");
  row.values["nic_bytes_per_s"] = spec.nic_bandwidth.value();
  row.say("network", "network", name_of(spec.network.value_or(Network::kNone)));
  row.values["oversubscription"] = spec.oversubscription;
  row.values["sources"] = spec.sources;
  return row;
}

std::string tflops_text(std::optional<FlopsPerSecond> rate) {
  return rate ? number_text(rate->value() / 1e12) : "";
}

CatalogRow row_of(const Accelerator& gpu) {
  CatalogRow row;
  row.say("GPU", "name", gpu.name);
  row.say("title", "title", gpu.title);
  row.show({"memory GiB"}, gib_text(gpu.memory));
  row.values["memory_bytes"] = gpu.memory;
  row.show({"bandwidth"}, rate_text(gpu.memory_bandwidth));
  row.values["memory_bandwidth_bytes_per_s"] = gpu.memory_bandwidth.value();
  row.show({"bf16 TFLOP/s"}, tflops_text(gpu.peak(DataType::kBf16)));
  row.show({"fp8 TFLOP/s"}, tflops_text(gpu.peak(DataType::kFp8)));
  for (const auto& [type, peak] : gpu.dense_peak) {
    row.values["dense_peak_flops_per_s"][name_of(type)] = peak.value();
  }
  row.say("SMs", "sm_count", gpu.sm_count);
  row.show({"W"}, number_text(gpu.power_w));
  row.values["power_w"] = gpu.power_w;
  row.say_if_any({"profile", Align::kLeft}, "profile",
                 gpu.profile.empty() ? nullptr : gpu.profile.c_str());
  row.values["sources"] = gpu.sources;
  return row;
}

CatalogRow row_of(const Schedule& schedule) {
  CatalogRow row;
  row.say("schedule", "name", schedule.name);
  row.say("bubble", "bubble", schedule.bubble);
  row.say("micro-batches in memory, stage 0", "in_flight", schedule.in_flight);
  row.say("source", "source", schedule.source);
  return row;
}

CatalogRow row_of(const Key& key) {
  CatalogRow row;
  row.say("key", "key", key.path);
  row.say("value", "value", key.type->accepts(), true);
  row.say("default", "default", key.fallback.text(), true);
  row.say_if_any({"flag", Align::kLeft}, "flag", key.flag.name);
  row.say("what it says", "help", key.help, true);
  row.values["searched"] = key.search != nullptr;
  return row;
}

CatalogRow row_of(const Figure& figure) {
  CatalogRow row;
  row.say("figure", "figure", figure.key, true);
  row.say_if_any({"required as", Align::kLeft, false, true}, "required_as", figure.required);
  row.say("what it says", "help", figure.words, true);
  return row;
}

CatalogRow row_of(const DeclaredKey& key) {
  CatalogRow row;
  row.say("key", "key", key.path);
  row.say("value", "value", key.accepts, true);
  row.say("default", "default", key.usual, true);
  row.say("what it says", "help", key.words, true);
  return row;
}

// Rows of those whose name contains the filter.
template <class Items, class Name>
TableRows rows_of(const Items& items, const std::string& filter, const Name& name) {
  TableRows out;
  for (const auto& item : items) {
    if (matches(name(item), filter)) out.push_back(row_of(item));
  }
  return out;
}

Result<TableRows> list_of_clusters(const DataFolders& folders, const std::string& filter) {
  return list_clusters(folders.topologies).map([&](const auto& specs) {
    return rows_of(specs, filter, [](const ClusterSpec& spec) { return spec.name; });
  });
}

// Whose price a cluster has: one row of the table in docs/economics.md.
CatalogRow row_of(const ClusterSpec& spec, const PriceList& prices) {
  const auto dollars = [](std::optional<double> price) {
    return price ? fmt::format("${:.2f}", *price) : std::string();
  };
  const Price* price = find_price(prices, spec);
  CatalogRow row;
  row.say("cluster", "name", spec.name);
  row.show({"$/GPU-hour"}, price ? dollars(price->asked(Rental::kOnDemand)) : "");
  row.show({"spot"}, price ? dollars(price->spot) : "");
  row.show({"reserved"}, price ? dollars(price->reserved) : "");
  if (price) {
    row.values["usd_per_gpu_hour"] = price->dollars_per_gpu_hour;
    if (price->spot) row.values["spot_usd_per_gpu_hour"] = *price->spot;
    if (price->reserved) row.values["reserved_usd_per_gpu_hour"] = *price->reserved;
    row.values["source"] = price->source;
  }
  row.say("of", "as_of", price ? price->as_of : "");
  row.say("whose price", "whose", price ? price->provider : why_no_price(spec), true);
  return row;
}

Result<TableRows> list_of_prices(const DataFolders& folders, const std::string& filter) {
  const auto prices = load_prices({folders.prices});
  if (!prices) return failure(prices.error());
  return list_clusters(folders.topologies).map([&](const auto& specs) {
    TableRows out;
    for (const ClusterSpec& spec : specs) {
      if (matches(spec.name, filter)) out.push_back(row_of(spec, *prices));
    }
    return out;
  });
}

Result<TableRows> list_of_gpus(const DataFolders& folders, const std::string& filter) {
  return list_accelerators(folders.topologies).map([&](const auto& gpus) {
    return rows_of(gpus, filter, [](const Accelerator& gpu) { return gpu.name; });
  });
}

Result<TableRows> list_of_schedules(const DataFolders&, const std::string& filter) {
  TableRows out;
  for (const Schedule* schedule : schedules()) {
    if (schedule->is_made() && matches(schedule->name, filter)) {
      out.push_back(row_of(*schedule));
    }
  }
  return out;
}

Result<TableRows> list_of_keys(const DataFolders&, const std::string& filter) {
  TableRows out;
  for (const Key* key : keys()) {
    if (matches(key->path, filter)) out.push_back(row_of(*key));
  }
  return out;
}

Result<TableRows> list_of_figures(const DataFolders&, const std::string& filter) {
  return rows_of(figures(), filter, [](const Figure& figure) { return figure.key; });
}

Result<TableRows> list_of_documents(const DataFolders&, const std::string& filter) {
  return rows_of(document_keys(), filter, [](const DeclaredKey& key) { return key.path; });
}

struct Topic {
  CatalogTopic words;
  Result<TableRows> (*list)(const DataFolders&, const std::string& filter);
};

constexpr Topic kTopics[] = {
    {{"models", "models, with exact parameter counts"}, list_of_models},
    {{"clusters", "clusters"}, list_of_clusters},
    {{"gpus", "accelerators"}, list_of_gpus},
    {{"prices", "what a GPU of each cluster costs an hour, and whose price that is"},
     list_of_prices},
    {{"schedules", "pipeline schedules"}, list_of_schedules},
    {{"keys", "keys of training and layout"}, list_of_keys},
    {{"figures", "figures of a forecast"}, list_of_figures},
    {{"documents", "keys of fabrics, suites, prices, files of ranks and baselines"},
     list_of_documents},
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
  if (rows->empty() && !filter.empty()) {
    return failure({ErrorCode::kNotFound, fmt::format("no name contains '{}'", filter), "",
                    "FILTER", fmt::format("stepcast show {} lists all", name)});
  }
  TextTable table(rows->empty() ? std::vector<Column>() : rows->front().columns);
  Json values = Json::array();
  for (CatalogRow& row : *rows) {
    table.add_row(std::move(row.cells));
    values.push_back(std::move(row.values));
  }
  return Listing{std::move(table), json_file(values, 1)};
}

}  // namespace stepcast
