// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/data_folder.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/collective_curve.h"

namespace stepcast {
namespace {

using Json = Json;

struct Table {
  MeasuredGroup measured;
  Launch launch = Launch::kOwn;
  std::string rejected;
  std::vector<CollectiveSample> samples;
  Json machine;  // its keys as published
};

Table read_table(const JsonValue& value) {
  Table table;
  ObjectReader reader(value);
  table.measured = read_measured_group(reader);
  table.launch =
      static_cast<Launch>(reader.choice("launch", {"own", "shared", "serial"}).value_or(0));
  table.rejected = reader.text("rejected").value_or("");
  reader.required_text("source");
  reader.ignore("notes");
  reader.ignore("accelerator");
  if (const auto rows = reader.required("rows_bytes_us")) {
    table.samples = read_collective_samples(*rows, Seconds(1e-6));
  }
  reader.finish();
  for (const char* key :
       {"id", "architecture", "scale_up", "scale_up_bandwidth", "pcie_bandwidth", "gpus_per_node",
        "nvls", "cpu", "network", "nics_per_node", "nic", "collective", "ranks", "domains"}) {
    if (value.is_object() && value.raw().contains(key)) table.machine[key] = value.raw()[key];
  }
  return table;
}

Seconds nominal(const MeasuredGroup& measured, const CollectiveSample& sample) {
  const CollectiveModel model(measured.cluster, measured.group);
  return model.estimate(measured.kind, sample.size, DataType::kFp32).time(sample.size);
}

// A loop that launches and waits pays the launch in every iteration: what the smallest message
// takes beyond its nominal price. Takes it off all samples.
Seconds remove_launch(const MeasuredGroup& measured, std::vector<CollectiveSample>& samples) {
  const CollectiveSample& smallest = samples.front();
  const Seconds launch = std::max(smallest.time - nominal(measured, smallest), Seconds());
  for (CollectiveSample& sample : samples) sample.time -= launch;
  return launch;
}

// One thread that launches the kernels of all GPUs takes longer than a short kernel: samples at the
// floor tell of the host.
void drop_host_bound(std::vector<CollectiveSample>& samples) {
  constexpr double kAtTheFloor = 1.25;
  const auto faster = [](const CollectiveSample& a, const CollectiveSample& b) {
    return a.time < b.time;
  };
  const Seconds floor = std::min_element(samples.begin(), samples.end(), faster)->time;
  const auto at_floor = [&](const CollectiveSample& sample) {
    return sample.time <= floor * kAtTheFloor;
  };
  const auto last = std::find_if(samples.rbegin(), samples.rend(), at_floor);
  if (samples.rend() - last >= 4) samples.erase(samples.begin(), last.base());
}

std::string rows_of(const std::vector<CollectiveSample>& samples) {
  std::string text;
  for (const CollectiveSample& sample : samples) {
    text += fmt::format("{}[{:.0f}, {:.6g}]", text.empty() ? "" : ", ", sample.size.value(),
                        sample.time.value() * 1e6);
  }
  return text;
}

std::string curve_text(const Table& table, Seconds launch) {
  std::string head = json_text(table.machine);
  head.pop_back();
  return fmt::format("  {},\"launch_us\":{:.4g},\n   \"samples\": [{}]}}", head,
                     launch.value() * 1e6, rows_of(table.samples));
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : ",\n") + line;
  return text;
}

}  // namespace

Seconds remove_host(const MeasuredGroup& measured, Launch launch,
                    std::vector<CollectiveSample>& samples) {
  if (launch == Launch::kSerial) return remove_launch(measured, samples);
  if (launch == Launch::kShared) drop_host_bound(samples);
  return {};
}

FitError held_out_sizes(const MeasuredGroup& measured, const std::vector<CollectiveSample>& samples,
                        Bytes from) {
  const CollectiveModel model(measured.cluster, measured.group);
  std::vector<double> ratios;
  for (std::size_t i = 1; i + 1 < samples.size(); ++i) {
    if (samples[i].size.value() < from.value()) continue;
    std::vector<CollectiveSample> others = samples;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const CollectiveCurves curves({CollectiveCurve(measured, others)});
    const CurvePrice price =
        curves.price(measured.cluster, model, measured.kind, samples[i].size, DataType::kFp32);
    ratios.push_back(std::log(price.time / samples[i].time));
  }
  return fit_error(ratios);
}

Result<FittedCollectives> fit_collective_curves(const std::vector<JsonDocument*>& published) {
  std::vector<Table> tables;
  for (JsonDocument* document : published) {
    ObjectReader root(document->root());
    root.required_integer("stepcast_published_collectives", 1, 1);
    root.ignore("convention");
    if (const std::optional<JsonValue> list = root.required("tables")) {
      for (const JsonValue& value : list->items()) tables.push_back(read_table(value));
    }
    root.finish();
    if (!document->ok()) return failure(document->errors());
  }

  FittedCollectives out;
  std::vector<std::string> curves, fitted_on, rejected;
  for (Table& table : tables) {
    if (!table.rejected.empty() || table.samples.empty()) {
      rejected.push_back("  " +
                         json_text(Json{{"id", table.measured.id}, {"why", table.rejected}}));
      continue;
    }
    const Seconds launch = remove_host(table.measured, table.launch, table.samples);
    curves.push_back(curve_text(table, launch));
    fitted_on.push_back("  " + json_text(Json(table.measured.id)));
    out.curves.push_back({table.measured, table.samples});
  }
  out.text = fmt::format(
      "{{\n \"stepcast_collectives\": 1,\n \"convention\": \"bytes as nccl-tests counts them, "
      "time of the kernel in us\",\n \"curves\": [\n{}\n ],\n \"fitted_on\": [\n{}\n ],\n "
      "\"rejected\": [\n{}\n ]\n}}\n",
      join(curves), join(fitted_on), join(rejected));
  return out;
}

Result<std::vector<std::unique_ptr<JsonDocument>>> published_collectives(
    const std::string& folder) {
  std::vector<std::unique_ptr<JsonDocument>> out;
  const auto names = data_names(folder);
  if (!names) return failure(names.error());
  for (const std::string& name : *names) {
    auto document = JsonDocument::load(folder + "/" + name + ".json");
    if (!document) return failure(document.error());
    if ((*document)->root().raw().contains("stepcast_published_collectives")) {
      out.push_back(std::move(*document));
    }
  }
  return out;
}

}  // namespace stepcast
