// SPDX-License-Identifier: Apache-2.0
// Shows what other speeds of resources do: the tornado, and the step without and with a change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html/bar_line.h"
#include "report/html/compare_sections.h"
#include "report/html/data_table.h"
#include "report/html/legend.h"
#include "report/number_text.h"

namespace stepcast::html {

Section tornado_section(const CompareReport& report) {
  const ComparedPoint& best = report.points[ranked(report).front()];
  const Seconds step = best.prediction->step_time;
  const std::string down = signed_percent_text(-report.change, 0);
  const std::string up = signed_percent_text(report.change, 0);
  DataTable table(
      "tornado",
      fmt::format("Step time against {} with one resource slower or faster", time_text(step)),
      {{"resource"}, {up, true}, {"", false, false}, {down, true}, {"what"}});
  double widest = 1e-9;
  for (const Sensitivity& one : report.sensitivity) {
    for (const Seconds time : {one.slower, one.faster}) {
      widest = std::max(widest, std::abs(time / step - 1));
    }
  }
  // A faster resource shortens the step: its bar reaches to the left, and its number stands there.
  for (const Sensitivity& one : report.sensitivity) {
    const double slower = one.slower / step - 1, faster = one.faster / step - 1;
    BarLine line;
    line.axis = 0.5;
    line.label = fmt::format("{} to {}", change_text(faster), change_text(slower));
    line.parts = {
        {0.5, slower / widest * 0.5, "mark-2", fmt::format("{}: {}", down, time_text(one.slower))},
        {0.5, faster / widest * 0.5, "mark-1", fmt::format("{}: {}", up, time_text(one.faster))}};
    table.add_row({one.resource,
                   {change_text(faster), faster},
                   DataCell(bar_line(line)),
                   {change_text(slower), slower},
                   one.title});
  }
  return {"tornado-section", "Which resource binds",
          legend({{"mark-2", "with the resource at " + down}, {"mark-1", "at " + up}}) +
              table.html() +
              note(fmt::format("The line is the step as it is, the ends of the widest bar {} of it "
                               "away. More of a resource whose bar is short would buy little.",
                               percent_text(widest, 2)))};
}

Section what_if_section(const CompareReport& report) {
  std::string changes;
  for (const std::string& text : report.what_if) {
    changes += (changes.empty() ? "" : ", ") + text;
  }
  DataTable table(
      "what-if", fmt::format("Step time without and with {}", changes),
      {{"point"}, {"", false, false}, {"without", true}, {"with", true}, {"change", true}});
  Seconds widest(1e-12);
  for (const ComparedPoint& point : report.points) {
    if (!point.unchanged) continue;
    widest = std::max({widest, point.unchanged->step_time, point.prediction->step_time});
  }
  const auto bar = [&](const char* css_class, Seconds time) {
    return bar_line({{{0, time / widest, css_class, time_text(time)}}, {}, time_text(time)});
  };
  for (const std::size_t index : ranked(report)) {
    const ComparedPoint& point = report.points[index];
    if (!point.unchanged) continue;
    const Seconds before = point.unchanged->step_time, after = point.prediction->step_time;
    const std::string name = point_text(report, point);
    table.add_row({name.empty() ? "the scenario" : name,
                   DataCell(bar("residual", before) + bar("mark-1", after)),
                   {time_text(before), before.value()},
                   {time_text(after), after.value()},
                   {change_text(after / before - 1), after / before - 1}});
  }
  return {"what-if-section", "What if " + changes,
          legend({{"residual", "without"}, {"mark-1", "with"}}) + table.html()};
}

}  // namespace stepcast::html
