// SPDX-License-Identifier: Apache-2.0
// A forecast's figures as keys of JSON, cells of CSV, and what people read of them in tables.
#pragma once

#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "predict/figures.h"
#include "report/text_table.h"

namespace stepcast {

struct Prediction;

// A table has these of a forecast: text for people, `exact` for CSV.
struct FigureCell {
  const Figure& figure;
  double value;
  std::string words;  // for people
  const std::string& text() const { return words; }
  std::string exact() const;
};
std::string mfu_text(const Prediction& prediction);  // "41.7 %"; of long sequences "38.9 % causal"
std::vector<FigureCell> figure_cells(FigureTable table, const Prediction& prediction);

// These head the columns: keys in CSV, titles where people read.
std::vector<Column> figure_keys(FigureTable table);
std::vector<const char*> figure_titles(FigureTable table);

void put_figure(Json& object, const Figure& figure, const Prediction& prediction);
void put_figures(Json& object, FigureGroup group, const Prediction& prediction);

}  // namespace stepcast
