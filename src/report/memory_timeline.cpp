// SPDX-License-Identifier: Apache-2.0
#include "report/memory_timeline.h"

#include <fmt/format.h>

#include <iterator>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "operation/memory_parts.h"
#include "predict/prediction.h"
#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast {

Written memory_timeline_csv(const Prediction& prediction) {
  fmt::memory_buffer out;
  const auto write = std::back_inserter(out);
  fmt::format_to(write, "ranks,stage,time_s");
  const int categories = memory_categories(prediction);
  for (int i = 0; i < categories; ++i) {
    fmt::format_to(write, ",{}_bytes", name_of(static_cast<MemoryCategory>(i)));
  }
  fmt::format_to(write, ",allocated_bytes\n");
  for (const MemorySample& sample : prediction.memory_samples) {
    const RankClass& rank_class =
        prediction.rank_classes[static_cast<std::size_t>(sample.rank_class)];
    fmt::format_to(write, "{},{},{}", csv_cell(ranks_text(rank_class.ranks)), rank_class.stage,
                   sample.at.value());
    for (int i = 0; i < categories; ++i) {
      fmt::format_to(write, ",{}", sample.parts[static_cast<std::size_t>(i)]);
    }
    fmt::format_to(write, ",{}\n", total(sample.parts));
  }
  return Written::escaped(fmt::to_string(out));
}

Written memory_timeline_json(const Prediction& prediction) {
  Json out;
  out["stepcast_memory_timeline"] = 1;
  out["device_memory_bytes"] = prediction.device_memory;
  out["columns"] = {"time_s"};
  const int categories = memory_categories(prediction);
  for (int i = 0; i < categories; ++i) {
    out["columns"].push_back(fmt::format("{}_bytes", name_of(static_cast<MemoryCategory>(i))));
  }
  out["classes"] = Json::array();
  for (const RankClass& rank_class : prediction.rank_classes) {
    Json entry;
    entry["ranks"] = ranks_text(rank_class.ranks);
    entry["stage"] = rank_class.stage;
    entry["samples"] = Json::array();
    out["classes"].push_back(std::move(entry));
  }
  for (const MemorySample& sample : prediction.memory_samples) {
    Json row = Json::array({sample.at.value()});
    for (int i = 0; i < categories; ++i) row.push_back(sample.parts[static_cast<std::size_t>(i)]);
    out["classes"][static_cast<std::size_t>(sample.rank_class)]["samples"].push_back(
        std::move(row));
  }
  return json_file(out);
}

}  // namespace stepcast
