// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "layout/choices.h"
#include "layout/scenario.h"
#include "report/advice_report.h"
#include "report/document_form.h"
#include "report/figure_columns.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

std::string question(const Scenario& base) {
  const Training& training = base.training;
  const std::string mode =
      training.trains_adapters()
          ? fmt::format(", {} of rank {}", name_of(training.mode), training.lora_rank)
          : "";
  return fmt::format(
      "{} ({} parameters, {}{}) on {} GPU{} of {} ({}), {} sequences of {} tokens",
      base.model.name.empty() ? "model" : base.model.name,
      parameters_text(count_parameters(base.model).total()), training.precision_name(), mode,
      base.cluster.gpus(), base.cluster.gpus() == 1 ? "" : "s", base.cluster.spec.name,
      base.cluster.spec.accelerator.title, training.global_batch, training.sequence_length);
}

std::string verdict_words(const RungResult& result, const Demands& demands) {
  switch (result.verdict) {
    case RungVerdict::kAdvised:
      return "ADVISED";
    case RungVerdict::kAbove:
      return demands.of_speed() || demands.budget ? "meets all" : "fits";
    case RungVerdict::kBehind:
      return "far behind";
    case RungVerdict::kSpare:
      return "leaves GPUs idle";
    case RungVerdict::kRefused:
      return "refused";
    case RungVerdict::kUnknown:
      return "no time";
    case RungVerdict::kFails:
      break;
  }
  switch (result.shortfalls.front().constraint) {
    case Constraint::kMemory:
      return "out of memory";
    case Constraint::kThroughput:
      return "too slow";
    case Constraint::kDeadline:
      return "too late";
    case Constraint::kBudget:
      return "too dear";
  }
  return "";
}

TextTable table_of(const AdviceReport& report) {
  const Advice& advice = report.advice;
  const bool run = advice.demands.tokens.has_value();
  std::vector<Column> columns{{"rung", Align::kLeft}, {"verdict", Align::kLeft}, {"GPUs"}, {"GiB"}};
  for (const char* title : figure_titles(kRungs)) columns.push_back({title});
  if (run) columns.insert(columns.end(), {{"run"}, {"cost"}});
  columns.push_back({"against advice"});
  TextTable table(columns);
  for (const RungResult& result : advice.rungs) {
    std::vector<std::string> row{result.rung->title, verdict_words(result, advice.demands),
                                 fmt::format("{}", result.gpus)};
    const Prediction* p = result.layout ? &result.layout->prediction : nullptr;
    row.push_back(p ? gib_text(p->peak_device) : "");
    const bool fits = p && result.fits;
    for (const FigureCell& cell : figure_cells(kRungs, p ? *p : Prediction{})) {
      row.push_back(fits ? cell.text() : "");
    }
    if (run) {
      const RunLength* length =
          fits && result.run->forecast.length ? &*result.run->forecast.length : nullptr;
      row.push_back(length ? duration_text(Seconds(length->wall_s.value)) : "");
      row.push_back(length && length->dollars ? number_text(length->dollars->value, 3) : "");
    }
    const bool compares = fits && advice.advised && result.verdict != RungVerdict::kAdvised;
    row.push_back(
        compares ? fmt::format("x {:.2f}", speed_against(result, advice.rungs[*advice.advised]))
                 : "");
    table.add_row(std::move(row));
  }
  return table;
}

// "Advice: FSDP (ZeRO-3) over 64 GPUs".
std::string headed(const Advice& advice) {
  if (!advice.advised) return "Advice: none";
  const RungResult& here = advice.rungs[*advice.advised];
  return fmt::format("Advice: {}{}", here.rung->title,
                     here.rung->one_gpu ? "" : fmt::format(" over {} GPUs", here.gpus));
}

Written answer(const AdviceReport& report, Form form) {
  const Advice& advice = report.advice;
  Written out = strong_line(headed(advice), form) + paragraph_end(form);
  if (advice.advised) {
    const RungResult& here = advice.rungs[*advice.advised];
    const Prediction& p = here.layout->prediction;
    out += bullet(layout_words(here), form);
    out +=
        bullet(fmt::format("{} a step ({} to {}, central 90 %), {} tokens/s, MFU {}, {} of {} GiB",
                           time_text(p.step_time), time_text(p.step_time_low),
                           time_text(p.step_time_high), number_text(p.tokens_per_s), mfu_text(p),
                           gib_text(p.peak_device), gib_text(p.device_memory)),
               form);
  }
  return out + bullet(because_text(report), form);
}

Written written(const AdviceReport& report, Form form) {
  const Advice& advice = report.advice;
  Written out = form == Form::kMarkdown ? title("Advice", form) : Written();
  out += line(question(report.base), form) + paragraph_end(form);
  out += line("Demands: " + demands_text(report), form) + "\n" + answer(report, form);
  if (advice.rungs.empty()) return out;
  out += heading("The ladder", form) + shown(table_of(report), form);
  out += heading("Rung by rung", form);
  for (const RungResult& result : advice.rungs) {
    out += bullet(fmt::format("{}: {}", result.rung->title, rung_text(report, result)), form);
  }
  if (!advice.advised && !advice.interrupted) {
    out += heading("What would change that", form);
    for (const RungResult& way : advice.ways_out) {
      out += bullet(way_out_text(way, report.base), form);
    }
    if (advice.ways_out.empty()) out += bullet(no_way_out_text(report), form);
  }
  return out;
}

}  // namespace

Written advice_table(const AdviceReport& report) { return written(report, Form::kText); }
Written advice_markdown(const AdviceReport& report) { return written(report, Form::kMarkdown); }

}  // namespace stepcast
