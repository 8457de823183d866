// SPDX-License-Identifier: Apache-2.0
#include "report/figure_columns.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_tree.h"
#include "predict/prediction.h"
#include "report/number_text.h"
#include "report/prediction_json.h"

namespace stepcast {
namespace {

template <class Take>
void for_each_in(FigureTable table, Take take) {
  for (const Figure& figure : figures()) {
    if ((figure.tables & table) != 0) take(figure);
  }
}

// "12.31 s", "41.7 %", "118,000"; bytes in GiB without the unit, which the column's title has.
std::string figure_text(const Figure& figure, double value) {
  switch (figure.unit) {
    case FigureUnit::kSeconds:
      return time_text(Seconds(value));
    case FigureUnit::kFraction:
      return percent_text(value);
    case FigureUnit::kBytes:
      return gib_text(std::llround(value));
    case FigureUnit::kRate:
      break;
  }
  return number_text(value);
}

std::string read_figure(const Figure& figure, const Prediction& prediction) {
  const bool is_causal = prediction.reads_causal && figure.causal != nullptr;
  if (!is_causal) return figure_text(figure, figure.of(prediction));
  return figure_text(figure, figure.causal(prediction)) + " causal";
}

}  // namespace

std::string mfu_text(const Prediction& prediction) {
  return read_figure(figure_of("mfu"), prediction);
}

std::string FigureCell::exact() const {
  return figure.unit == FigureUnit::kBytes ? fmt::format("{}", std::llround(value))
                                           : exact_text(value);
}

std::vector<FigureCell> figure_cells(FigureTable table, const Prediction& prediction) {
  std::vector<FigureCell> out;
  for_each_in(table, [&](const Figure& figure) {
    out.push_back({figure, figure.of(prediction), read_figure(figure, prediction)});
  });
  return out;
}

std::vector<Column> figure_keys(FigureTable table) {
  std::vector<Column> out;
  for_each_in(table, [&](const Figure& figure) { out.push_back({figure.key}); });
  return out;
}

std::vector<const char*> figure_titles(FigureTable table) {
  std::vector<const char*> out;
  for_each_in(table, [&](const Figure& figure) { out.push_back(figure.title); });
  return out;
}

void put_figure(Json& object, const Figure& figure, const Prediction& prediction) {
  const double value = figure.of(prediction);
  if (figure.unit == FigureUnit::kBytes) {
    object[figure.key] = std::llround(value);
  } else {
    put(object, figure.key, value);
  }
}

void put_figures(Json& object, FigureGroup group, const Prediction& prediction) {
  for (const Figure& figure : figures()) {
    if (figure.group == group) put_figure(object, figure, prediction);
  }
}

}  // namespace stepcast
