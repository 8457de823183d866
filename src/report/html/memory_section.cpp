// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/breakdown.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/legend.h"
#include "report/html/memory_chart.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

struct Part {
  std::string label;
  const char* css_class;
  ByteCount bytes;
};

// Adds up to device_bytes().
std::vector<Part> parts_of(const RankClass& rank_class) {
  std::vector<Part> out;
  for (int i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (category == MemoryCategory::kOuter && rank_class.memory.back() == 0) continue;
    out.push_back({name_of(category), css_class_of(category),
                   rank_class.memory[static_cast<std::size_t>(i)]});
  }
  out.push_back({"allocator", "residual", rank_class.reserved_bytes - rank_class.peak_memory});
  out.push_back({"framework", "residual", rank_class.framework_bytes});
  return out;
}

DataCell gib_cell(ByteCount bytes) { return {gib_text(bytes), static_cast<double>(bytes)}; }

Html bars(const Prediction& prediction) {
  std::vector<DataColumn> columns{{"stage", true}, {"", false, false}};
  std::vector<LegendEntry> entries;
  const std::vector<const RankClass*> classes = fullest_by_stage(prediction);
  std::vector<bool> shown;
  for (const Part& part : parts_of(*classes.front())) {
    const std::size_t index = shown.size();
    shown.push_back(std::any_of(classes.begin(), classes.end(), [&](const RankClass* one) {
      return parts_of(*one)[index].bytes != 0;
    }));
    if (!shown.back()) continue;
    columns.push_back({part.label, true});
    const bool known = !entries.empty() && entries.back().css_class == part.css_class;
    if (known) {
      entries.back().label += " and " + part.label;
    } else {
      entries.push_back({part.css_class, part.label});
    }
  }
  columns.push_back({"device", true});
  columns.push_back({"used", true});
  DataTable table("stages", "GiB at the peak, on the fullest rank of each stage", columns);
  const auto widest = static_cast<double>(
      std::max({prediction.peak_device, prediction.device_memory, ByteCount{1}}));
  for (const RankClass* one : classes) {
    BarLine line;
    line.limit = static_cast<double>(prediction.device_memory) / widest;
    std::vector<DataCell> cells{{fmt::format("{}", one->stage), static_cast<double>(one->stage)},
                                ""};
    double start = 0;
    const std::vector<Part> parts = parts_of(*one);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double length = static_cast<double>(parts[i].bytes) / widest;
      line.parts.push_back({start, length, parts[i].css_class,
                            fmt::format("{}: {} GiB", parts[i].label, gib_text(parts[i].bytes))});
      start += length;
      if (shown[i]) cells.push_back(gib_cell(parts[i].bytes));
    }
    line.label = fmt::format("{} of {} GiB", gib_text(device_bytes(*one)),
                             gib_text(prediction.device_memory));
    cells[1] = DataCell(bar_line(line));
    cells.push_back(gib_cell(device_bytes(*one)));
    const double share = static_cast<double>(device_bytes(*one)) /
                         static_cast<double>(std::max<ByteCount>(prediction.device_memory, 1));
    cells.push_back({percent_text(share, 0), share});
    table.add_row(cells);
  }
  return legend(entries) + table.html() +
         note(fmt::format("The dashed line is the device's memory, {} GiB. Framework: context, "
                          "libraries, communicators.",
                          gib_text(prediction.device_memory)));
}

Html timelines(const Prediction& prediction) {
  Html charts;
  const std::vector<bool> drawn = classes_of_one_pipeline(prediction);
  std::vector<MemoryChart> all;
  for (std::size_t c = 0; c < prediction.rank_classes.size(); ++c) {
    if (!drawn[c]) continue;
    MemoryChart chart;
    chart.title = fmt::format("stage {}", prediction.rank_classes[c].stage);
    chart.stage = prediction.rank_classes[c].stage;
    chart.length = prediction.step_time;
    chart.top = prediction.peak_memory;
    for (const MemorySample& sample : prediction.memory_samples) {
      if (static_cast<std::size_t>(sample.rank_class) == c) chart.samples.push_back(&sample);
    }
    all.push_back(std::move(chart));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const MemoryChart& a, const MemoryChart& b) { return a.stage < b.stage; });
  for (const MemoryChart& chart : all) charts += memory_chart(chart, all.size());
  return element("h3", {}, "Allocated memory over the step") +
         element("div", {{"class", "charts"}}, charts);
}

}  // namespace

Section memory_section(const Prediction& prediction) {
  Html body = bars(prediction);
  if (!prediction.memory_samples.empty()) body += timelines(prediction);
  return {"memory", "Memory by stage", body};
}

}  // namespace stepcast::html
