// SPDX-License-Identifier: Apache-2.0
#include "report/validation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/escape.h"
#include "report/breakdown.h"
#include "report/junit.h"
#include "report/number_text.h"
#include "report/text_table.h"
#include "validate/run_figures.h"

namespace stepcast {
namespace {

constexpr std::size_t kOperations = 15;

std::string error_text(const std::optional<double>& error) {
  return error ? signed_percent_text(*error) : "";
}

std::string memory_text(double bytes) {
  constexpr double kMiB = 1048576.0;
  if (bytes < 1024) return fmt::format("{:g} B", bytes);
  if (bytes < kMiB) return number_text(bytes / 1024) + " KiB";
  return bytes < 1024 * kMiB ? number_text(bytes / kMiB) + " MiB"
                             : number_text(bytes / (1024 * kMiB)) + " GiB";
}

// Points of a fraction: a bubble has no relative error where it is zero.
std::string points_text(double difference) {
  return fmt::format("{:+.1f} points", 100 * difference);
}

std::string value_text(const RunFigure& figure, double value) {
  if (figure.is_memory()) return memory_text(value);
  if (figure.forecast.unit == FigureUnit::kSeconds) return time_text(Seconds(value));
  return figure.forecast.unit == FigureUnit::kFraction ? percent_text(value) : number_text(value);
}

TextTable figure_table(const Validation& validation) {
  const Prediction& predicted = validation.predicted;
  TextTable table({{"", Align::kLeft},
                   {"forecast"},
                   {"central 90 %"},
                   {"measured"},
                   {"p10 to p90"},
                   {"error"}});
  const auto add = [&](const RunFigure& figure) {
    const auto run = figure.measured(validation.measured);
    if (figure.title == nullptr || !run) return;
    const auto text = [&](double value) { return value_text(figure, value); };
    const Spread* spread = figure.spread ? figure.spread(validation.measured) : nullptr;
    const ComparedFigure* compared = validation.figure(figure.key);
    table.add_row(
        {figure.title, text(figure.forecast.of(predicted)),
         figure.forecast.unit != FigureUnit::kSeconds
             ? ""
             : range_text(time_text(predicted.step_time_low), time_text(predicted.step_time_high)),
         text(*run), spread ? range_text(text(spread->p10), text(spread->p90)) : "",
         figure.as_difference && compared ? points_text(*compared->error)
                                          : error_text(compared ? compared->error : std::nullopt)});
  };
  for (const bool memory : {false, true}) {
    for (const RunFigure& figure : run_figures()) {
      if (figure.is_memory() == memory) add(figure);
    }
  }
  return table;
}

TextTable time_table(const Validation& validation) {
  TextTable table({{"where", Align::kLeft}, {"forecast"}, {"measured"}, {"difference"}});
  const auto predicted = parts_of(validation.predicted.time);
  const auto measured = parts_of(validation.measured.time);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const Seconds forecast = predicted[i].time, run = measured[i].time;
    if (forecast.value() == 0 && run.value() == 0) continue;
    table.add_row(
        {predicted[i].label, time_text(forecast), time_text(run), time_text(forecast - run)});
  }
  return table;
}

TextTable operation_table(const Validation& validation) {
  TextTable table({{"operation", Align::kLeft},
                   {"phase", Align::kLeft},
                   {"calls"},
                   {"forecast"},
                   {"measured"},
                   {"difference"},
                   {"error"}});
  for (const ComparedOperation& one : validation.operations) {
    if (&one - validation.operations.data() >= static_cast<std::ptrdiff_t>(kOperations)) break;
    std::string phase = name_of(one.phase);
    std::replace(phase.begin(), phase.end(), '_', ' ');
    table.add_row({one.name, std::move(phase),
                   fmt::format("{:g}", std::max(one.predicted_calls, one.measured_calls)),
                   time_text(one.predicted), time_text(one.measured),
                   time_text(one.predicted - one.measured), error_text(one.error)});
  }
  return table;
}

TextTable drift_table(const BaselineDrift& drift) {
  TextTable table(
      {{"", Align::kLeft}, {"recorded"}, {"now"}, {"change"}, {"limit"}, {"", Align::kLeft}});
  const auto value = [](const DriftRow& row, double figure) {
    if (row.key.ends_with("_bytes")) return memory_text(figure);
    return row.key == "bubble_fraction" ? percent_text(figure) : time_text(Seconds(figure));
  };
  for (const DriftRow& row : drift.rows) {
    const bool points = row.key == "bubble_fraction";
    std::string change, limit;
    if (row.limit) {
      change = points ? points_text(row.change) : signed_percent_text(row.change);
      limit = points ? fmt::format("{:g} points", 100 * *row.limit) : percent_text(*row.limit);
    } else {
      change = time_text(Seconds(row.now - row.recorded));
    }
    table.add_row({fmt::format("{}{} {}", row.limit ? "" : "  ",
                               row.predicted ? "forecast" : "measured", row.words),
                   value(row, row.recorded), value(row, row.now), std::move(change),
                   std::move(limit),
                   row.state == DriftState::kBroken         ? "broken"
                   : row.state == DriftState::kInconclusive ? "inconclusive"
                   : row.state == DriftState::kBetter       ? "better"
                                                            : ""});
  }
  return table;
}

std::string operation_title(const Validation& validation) {
  const std::size_t all = validation.operations.size();
  const std::string rank =
      fmt::format("Operations of rank {} in a step", validation.measured.critical_rank.value);
  return all > kOperations
             ? fmt::format("{}: the {} of {} that differ most", rank, kOperations, all)
             : rank;
}

std::string numerics_text(const Validation& validation) {
  const auto& numerics = validation.measured.numerics;
  if (!numerics) return "Numerics: not compared with the reference";
  const NumericsLimits limits = validation.numerics.value_or(NumericsLimits{});
  if (!numerics->parameter_relative_error) {
    return fmt::format("Numerics: loss within {:.2g} of one rank in fp32 (limit {:g})",
                       numerics->loss_relative_error, limits.loss);
  }
  return fmt::format(
      "Numerics: loss within {:.2g}, parameters within {:.2g} of one rank alone (limit {:g})",
      numerics->loss_relative_error, *numerics->parameter_relative_error, limits.loss);
}

std::vector<std::string> verdict_lines(const Validation& validation) {
  const std::string summary = validation_summary(validation);
  const char* verdict = validation.inconclusive() ? "inconclusive"
                        : validation.passed()     ? "passed"
                                                  : "failed";
  std::vector<std::string> out{fmt::format("{}: {}", verdict, summary)};
  const auto list = [&](const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      out.push_back(fmt::format("  {}: {}", finding.title, finding.message));
    }
  };
  list(validation.broken);
  if (validation.regressed()) list(validation.drift->broken);
  if (validation.drift && !validation.drift->updated) list(validation.drift->inconclusive);
  if (validation.drift && !validation.drift->skipped.empty()) {
    out.push_back(fmt::format("  not compared with {}: {}", validation.drift->file,
                              validation.drift->skipped));
  }
  if (const std::string busy = busy_machine_text(validation.measured); !busy.empty()) {
    out.push_back("  " + busy);
  }
  return out;
}

std::string drift_title(const BaselineDrift& drift) { return "Against " + drift.file; }

std::string steps_text(const Validation& validation) {
  if (validation.alone) return fmt::format("Median of {} steps", validation.measured.periods);
  return fmt::format("Median of {} steps; the critical rank is rank {}",
                     validation.measured.periods, validation.measured.critical_rank.value);
}

}  // namespace

std::string busy_machine_text(const MeasuredRun& run) {
  if (!run.load || !run.load->processors.is_too_busy()) return "";
  return fmt::format(
      "{} was busy: while the steps were measured, other processes used {} of its processors and "
      "the host of a virtual machine {}. The step may be faster than measured: run it again when "
      "the machine is quiet",
      run.load->host.empty() ? "the machine" : run.load->host,
      percent_text(run.load->processors.others_fraction()),
      percent_text(run.load->processors.stolen_fraction()));
}

std::string validation_summary(const Validation& validation) {
  const MeasuredRun& measured = validation.measured;
  const ComparedFigure* time = validation.figure("step_time_s");
  return fmt::format("step time {} forecast, {} measured ({}), {} the interval",
                     time_text(validation.predicted.step_time),
                     time_text(Seconds(measured.step_time.median)),
                     time != nullptr && time->error ? signed_percent_text(*time->error) : "-",
                     validation.covered ? "inside" : "outside");
}

namespace {

// A list of Markdown begins with the verdict, and then says on what it rests.
Written markdown_verdict(const Validation& validation) {
  constexpr Form kForm = Form::kMarkdown;
  Written out;
  for (const std::string& one : verdict_lines(validation)) out += bullet(one, kForm);
  if (!validation.alone) out += bullet(numerics_text(validation), kForm);
  return out + bullet(steps_text(validation), kForm);
}

Written text_verdict(const Validation& validation, Form form) {
  Written out = "\n" + line(steps_text(validation), form);
  if (!validation.alone) out += line(numerics_text(validation), form);
  const char* color = validation.inconclusive() ? "1;33" : validation.passed() ? "1;32" : "1;31";
  for (const std::string& one : verdict_lines(validation)) out += colored_line(one, color, form);
  return out;
}

// Says what ran, and what did not.
Written alone_lines(const Validation& validation, Form form) {
  if (!validation.alone) return {};
  const RankAlone& alone = *validation.alone;
  Written out =
      paragraph_end(form) +
      line(fmt::format("Rank {} of {} alone (stage {}, tp {}, dp {}); forecast and run leave out:",
                       alone.rank.value, alone.ranks, alone.point.pp, alone.point.tp,
                       alone.point.dp),
           form);
  for (const LeftOut& one : alone.left_out) {
    out += "- " + line(fmt::format("{} {} a step, {}", one.calls, one.what,
                                   memory_text(static_cast<double>(one.bytes))),
                       form);
  }
  out += paragraph_end(form) +
         line(
             "What others would have sent is whatever lies in the buffers: the loss means "
             "nothing, and numerics are not compared.",
             form);
  return out;
}

}  // namespace

Written validation_table(const Scenario& scenario, const Validation& validation, Form form) {
  const bool markdown = form == Form::kMarkdown;
  Written out = title(headline(scenario), form) + line(layout_text(scenario), form) + "\n";
  if (markdown) out += markdown_verdict(validation);
  out += alone_lines(validation, form);
  if (markdown || validation.alone) out += "\n";
  out += shown(figure_table(validation), form);
  const bool drifts = validation.drift && !validation.drift->rows.empty();
  const auto drift = [&] {
    return heading(drift_title(*validation.drift), form) +
           shown(drift_table(*validation.drift), form);
  };
  if (markdown && drifts) out += drift();
  out += heading("Where the step goes, on the critical rank", form);
  out += shown(time_table(validation), form);
  if (!validation.operations.empty()) {
    out += heading(operation_title(validation), form) + shown(operation_table(validation), form);
  }
  if (markdown) return out;
  if (drifts) out += drift();
  return out + text_verdict(validation, form);
}

Written validation_junit(const Scenario& scenario, const Validation& validation) {
  std::string name = headline(scenario) + ", " + layout_text(scenario);
  if (validation.alone) name += fmt::format(", rank {} alone", validation.alone->rank.value);
  std::vector<Finding> broken = validation.broken;
  if (validation.regressed()) {
    const std::vector<Finding>& more = validation.drift->broken;
    broken.insert(broken.end(), more.begin(), more.end());
  }
  const JunitCase run{"validate", name, JunitOutcome::kPassed, validation_summary(validation)};
  return junit_xml("stepcast validate", {JunitSuite{"validate", {run}}, junit_gate(broken)});
}

Written validation_github(const Validation& validation) {
  Written out;
  for (const Finding& finding : validation.broken) {
    out += github_command("error", finding.title, finding.message);
  }
  if (const auto& drift = validation.drift) {
    const char* kind = drift->updated ? "notice" : "error";
    for (const Finding& finding : drift->broken) {
      out += github_command(kind, finding.title, finding.message);
    }
    for (const Finding& finding : drift->inconclusive) {
      out += github_command(drift->updated ? "notice" : "warning",
                            finding.title + " (inconclusive)", finding.message);
    }
    if (!drift->skipped.empty()) {
      out += github_command("warning", "not compared with " + drift->file, drift->skipped);
    }
  }
  if (const std::string busy = busy_machine_text(validation.measured); !busy.empty()) {
    out += github_command("warning", "busy machine", busy);
  }
  return out + github_command("notice", "stepcast validate", validation_summary(validation));
}

}  // namespace stepcast
