// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cost/collective_curve.h"

namespace stepcast {
namespace {

using Json = nlohmann::ordered_json;

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
  std::string head = table.machine.dump();
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

Result<std::string> fit_collective_curves(JsonDocument& published) {
  ObjectReader root(published.root());
  root.required_integer("stepcast_published_collectives", 1, 1);
  root.ignore("convention");
  std::vector<Table> tables;
  if (const std::optional<JsonValue> list = root.required("tables")) {
    for (const JsonValue& value : list->items()) tables.push_back(read_table(value));
  }
  root.finish();
  if (!published.ok()) return failure(published.errors());

  std::vector<std::string> curves, fitted_on, rejected;
  for (Table& table : tables) {
    if (!table.rejected.empty() || table.samples.empty()) {
      rejected.push_back("  " + Json{{"id", table.measured.id}, {"why", table.rejected}}.dump());
      continue;
    }
    const Seconds launch = remove_host(table.measured, table.launch, table.samples);
    curves.push_back(curve_text(table, launch));
    fitted_on.push_back("  " + Json(table.measured.id).dump());
  }
  return fmt::format(
      "{{\n \"stepcast_collectives\": 1,\n \"convention\": \"bytes as nccl-tests counts them, "
      "time of the kernel in us\",\n \"curves\": [\n{}\n ],\n \"fitted_on\": [\n{}\n ],\n "
      "\"rejected\": [\n{}\n ]\n}}\n",
      join(curves), join(fitted_on), join(rejected));
}

}  // namespace stepcast
