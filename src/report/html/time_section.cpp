// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "report/breakdown.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

const char* css_class_of(TimeKind kind) {
  switch (kind) {
    case TimeKind::kIdeal:
      return "forward";
    case TimeKind::kCompute:
      return "backward";
    case TimeKind::kRecompute:
      return "recompute";
    case TimeKind::kOptimizer:
      return "optimizer";
    case TimeKind::kExposed:
      return "communication";
    case TimeKind::kImbalance:
    case TimeKind::kBubble:
    case TimeKind::kOther:
      return "weight";
  }
  return "weight";
}

std::vector<DataColumn> columns_of(const char* what) {
  return {{what}, {"", false, false}, {"seconds", true}, {"share of the step", true}};
}

void add_part(DataTable& table, const TimePart& part, Seconds start, Seconds step) {
  const double share = part.time / step;
  const BarLine line{{{start / step, share, css_class_of(part.kind), ""}},
                     {},
                     fmt::format("{} of the step", percent_text(share))};
  table.add_row({part.label,
                 DataCell(bar_line(line)),
                 {time_text(part.time), part.time.value()},
                 {percent_text(share), share}});
}

Html waterfall(const Prediction& prediction) {
  DataTable table("waterfall", "From ideal FLOP time to step time, one loss after the other",
                  columns_of("step"));
  Seconds sum;
  for (const TimePart& step : steps_of(prediction.waterfall)) {
    if (step.time.value() == 0) continue;
    add_part(table, step, sum, prediction.step_time);
    sum += step.time;
  }
  const BarLine whole{{{0, 1, "mark-1", ""}}, {}, "the whole step"};
  table.add_row({"step time",
                 DataCell(bar_line(whole)),
                 {time_text(prediction.step_time), prediction.step_time.value()},
                 {percent_text(1), 1}},
                "total");
  Html out = table.html();
  // A thousandth of the step is less than a bar shows.
  if (prediction.lost_on_links > 0.001 * prediction.step_time) {
    out += note(fmt::format("Of what is exposed, {} are lost where transfers meet on a link.",
                            time_text(prediction.lost_on_links)));
  }
  return out;
}

Html parts(const Prediction& prediction) {
  DataTable table("parts", "Each instant of the critical rank's step to the first that applies",
                  columns_of("where"));
  for (const TimePart& part : parts_of(prediction.time)) {
    if (part.time.value() != 0) add_part(table, part, Seconds(0), prediction.step_time);
  }
  return table.html();
}

}  // namespace

Section time_section(const Prediction& prediction) {
  Html body;
  // One rank alone has no ideal time to come from.
  if (!prediction.alone) body += element("h3", {}, "Waterfall") + waterfall(prediction);
  body += element("h3", {}, "Critical rank") + parts(prediction);
  return {"time", "Where the time goes", body};
}

}  // namespace stepcast::html
