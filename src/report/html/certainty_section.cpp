// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cost/provenance.h"
#include "predict/prediction.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

const char* css_class_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured:
      return "backward";
    case Provenance::kInterpolated:
      return "forward";
    case Provenance::kExtrapolated:
      return "weight";
    case Provenance::kDataSheet:
      return "recompute";
  }
  return "residual";
}

Html interval(const Prediction& prediction) {
  const double low = prediction.step_time_low.value(), high = prediction.step_time_high.value();
  const double width = std::max(high - low, 1e-12);
  const std::string from = time_text(prediction.step_time_low);
  const std::string to = time_text(prediction.step_time_high);
  const std::string words =
      fmt::format("{} (central 90 %: {} to {})", time_text(prediction.step_time), from, to);
  const double point = (prediction.step_time.value() - low) / width;
  return paragraph("Step time " + words) +
         bar_line({{{0, 1, "forward", "central 90 %"}, {point - 0.002, 0.004, "mark-2", "median"}},
                   {},
                   words}) +
         element("p", {{"class", "ends"}},
                 element("span", {}, from) + element("span", {}, "the mark is the median") +
                     element("span", {}, to));
}

}  // namespace

Section certainty_section(const Prediction& prediction) {
  DataTable table("provenance",
                  "Share of the critical path's busy time by where its costs come from",
                  {{"source of costs"}, {"", false, false}, {"share", true}});
  double start = 0;
  for (int i = 0; i < kProvenances; ++i) {
    const auto provenance = static_cast<Provenance>(i);
    const double share = prediction.provenance[static_cast<std::size_t>(i)];
    std::string name = name_of(provenance);
    std::replace(name.begin(), name.end(), '_', ' ');
    const BarLine own{{{start, share, css_class_of(provenance), ""}}, {}, percent_text(share)};
    table.add_row({name, DataCell(bar_line(own)), {percent_text(share), share}});
    start += share;
  }
  return {"certainty", "How sure it is", interval(prediction) + table.html()};
}

}  // namespace stepcast::html
