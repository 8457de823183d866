// SPDX-License-Identifier: Apache-2.0
#include "report/acceptance_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/escape.h"
#include "report/junit.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

std::string figure_of(const Judged& one, double value) {
  if (one.unit == "s") return time_text(Seconds(value));
  if (one.unit == "B/s") return rate_text(BytesPerSecond(value));
  return number_text(value) + " " + one.unit;
}

// "12.1 GB/s, of at least 20 GB/s"
std::string judged_text(const Judged& one) {
  return fmt::format("{}, of {} {}",
                     one.measured ? figure_of(one, *one.measured) : std::string("not measured"),
                     one.at_most ? "at most" : "at least", figure_of(one, one.threshold));
}

TextTable judged_rows(const std::vector<Judged>& judged) {
  TextTable table(
      {{"", Align::kLeft}, {"threshold"}, {"measured"}, {"margin"}, {"", Align::kLeft}});
  for (const Judged& one : judged) {
    table.add_row(
        {one.what,
         fmt::format("{} {}", one.at_most ? "at most" : "at least", figure_of(one, one.threshold)),
         one.measured ? figure_of(one, *one.measured) : "not measured",
         one.measured ? signed_percent_text(*one.measured / one.threshold - 1) : "",
         one.kept() ? "kept" : "broken"});
  }
  return table;
}

std::vector<Finding> broken_of(const std::vector<Judged>& judged) {
  std::vector<Finding> out;
  for (const Judged& one : judged) {
    if (!one.kept()) out.push_back({one.what, judged_text(one)});
  }
  return out;
}

}  // namespace

Written acceptance_table(const std::vector<Judged>& judged, Form form) {
  const auto broken = broken_of(judged).size();
  Written out = shown(judged_rows(judged), form) + "\n";
  return out + colored_line(broken == 0 ? std::string("passed: all thresholds are kept")
                                        : fmt::format("failed: {} of {} thresholds are broken",
                                                      broken, judged.size()),
                            broken == 0 ? "1;32" : "1;31", form);
}

Written acceptance_csv(const std::vector<Judged>& judged) { return judged_rows(judged).csv(); }

Written acceptance_json(const std::vector<Judged>& judged) {
  Json out;
  out["stepcast"] = 1;
  out["thresholds"] = Json::array();
  for (const Judged& one : judged) {
    Json& row = out["thresholds"].emplace_back();
    row["what"] = one.what;
    row["unit"] = one.unit;
    put(row, one.at_most ? "most" : "least", one.threshold);
    if (one.measured) put(row, "measured", *one.measured);
    row["kept"] = one.kept();
  }
  out["passed"] = broken_of(judged).empty();
  return json_file(out, 2);
}

Written acceptance_junit(const std::vector<Judged>& judged) {
  JunitSuite suite{"acceptance", {}};
  for (const Judged& one : judged) {
    suite.cases.push_back({"acceptance", one.what,
                           one.kept() ? JunitOutcome::kPassed : JunitOutcome::kFailed,
                           judged_text(one)});
  }
  return junit_xml("stepcast check", {suite});
}

Written acceptance_github(const std::vector<Judged>& judged) {
  Written out;
  const auto broken = broken_of(judged);
  for (const Finding& one : broken) out += github_command("error", one.title, one.message);
  if (broken.empty()) {
    out += github_command("notice", "stepcast check", "all thresholds are kept");
  }
  return out;
}

}  // namespace stepcast
