// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "layout/layout.h"
#include "layout/scenario.h"
#include "report/breakdown.h"
#include "report/figure_columns.h"
#include "report/number_text.h"
#include "report/prediction_table.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

class CsvLine {
 public:
  void add(std::string title, std::string value) {
    columns_.push_back({std::move(title), Align::kLeft});
    values_.push_back(std::move(value));
  }
  void add(std::string title, double value) { add(std::move(title), exact_text(value)); }
  void add(std::string title, std::int64_t value) {
    add(std::move(title), fmt::format("{}", value));
  }
  void add(std::string title, Seconds value) { add(std::move(title), value.value()); }

  Written text() const {
    TextTable table(columns_);
    table.add_row(values_);
    return table.csv();
  }

 private:
  std::vector<Column> columns_;
  std::vector<std::string> values_;
};

void add_scenario(CsvLine& line, const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  line.add("model", scenario.model.name);
  line.add("cluster", scenario.cluster.spec.name);
  line.add("gpus", scenario.whole_cluster().gpus());
  line.add("framework", std::string(name_of(scenario.training.framework)));
  line.add("precision", std::string(scenario.training.precision_name()));
  line.add("global_batch", scenario.training.global_batch);
  line.add("sequence_length", scenario.training.sequence_length);
  line.add("tp", layout.tp);
  line.add("cp", layout.cp);
  line.add("ep", layout.ep);
  line.add("pp", layout.pp);
  line.add("dp", layout.dp);
  line.add("virtual_stages", layout.virtual_stages);
  line.add("micro_batch", layout.micro_batch);
  line.add("micro_batches", scenario.micro_batches());
  line.add("zero", std::int64_t{layout.zero});
  line.add("schedule", std::string(name_of(layout.schedule)));
  line.add("recompute", std::string(name_of(layout.recompute.mode)));
}

}  // namespace

Written prediction_csv(const Scenario& scenario, const Prediction& prediction,
                       const std::vector<std::pair<std::string, double>>& more) {
  CsvLine line;
  add_scenario(line, scenario);
  line.add("fits", std::string(prediction.fits ? "true" : "false"));
  const std::vector<FigureCell> cells = figure_cells(kForecastRow, prediction);
  const auto add_figures = [&](bool memory) {
    for (const FigureCell& cell : cells) {
      const bool is_memory = cell.figure.group == FigureGroup::kMemory;
      if (is_memory == memory) line.add(cell.figure.key, cell.exact());
    }
  };
  add_figures(false);
  for (const TimePart& part : parts_of(prediction.time)) {
    line.add(fmt::format("{}_s", part.key), part.time);
  }
  add_figures(true);
  for (int i = 0; i < kProvenances; ++i) {
    line.add(fmt::format("provenance_{}", name_of(static_cast<Provenance>(i))),
             prediction.provenance[static_cast<std::size_t>(i)]);
  }
  for (const auto& [title, value] : more) line.add(title, value);
  return line.text();
}

}  // namespace stepcast
