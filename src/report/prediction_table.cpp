// SPDX-License-Identifier: Apache-2.0
#include "report/prediction_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/text/escape.h"
#include "layout/scenario.h"
#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kPathSteps = 12;
constexpr const char* kNextStep =
    "stepcast plan searches for a layout that fits; plan --advise says what fills the memory.";

const char* color_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "32";
    case Verdict::kTight:
      return "33";
    case Verdict::kDoesNotFit:
      return "31";
  }
  return "0";
}

// One unit for a column of times, by the largest of them.
struct TimeUnit {
  const char* name;
  double per_second;
};

TimeUnit unit_of(Seconds largest) {
  return largest.value() < 10 ? TimeUnit{"ms", 1e3} : TimeUnit{"s", 1};
}

std::string in_unit(Seconds time, TimeUnit unit) {
  return fixed_text(time.value() * unit.per_second, unit.per_second > 1 ? 1 : 3);
}

// "MFU 41.7 %, HFU 52.0 % (full attention)".
std::string use_words(const Prediction& prediction) {
  if (prediction.reads_causal) {
    return fmt::format("MFU {}, HFU {} (causal attention; with full attention MFU {})",
                       percent_text(prediction.mfu_causal), percent_text(prediction.hfu_causal),
                       percent_text(prediction.mfu));
  }
  const std::string hfu =
      std::isfinite(prediction.hfu) ? fmt::format(", HFU {}", percent_text(prediction.hfu)) : "";
  return fmt::format("MFU {}{} ({})", percent_text(prediction.mfu), hfu,
                     flop_count_text(prediction.flops));
}

std::vector<std::string> verdict_lines(const Scenario& scenario, const Prediction& prediction) {
  const double share = static_cast<double>(prediction.peak_device) /
                       static_cast<double>(std::max<ByteCount>(prediction.device_memory, 1));
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {} of {} GiB on the fullest GPU ({})",
                              name_of(verdict_of(prediction)), gib_text(prediction.peak_device),
                              gib_text(prediction.device_memory), percent_text(share, 0)));
  if (prediction.peak_host > 0) {
    const std::string of =
        prediction.host_memory > 0 ? fmt::format(" of {}", gib_text(prediction.host_memory)) : "";
    lines.push_back(fmt::format("{}{} GiB of host memory on the fullest node",
                                gib_text(prediction.peak_host), of));
  }
  lines.push_back(fmt::format("step time {} ({} to {}, central 90 %)",
                              time_text(prediction.step_time), time_text(prediction.step_time_low),
                              time_text(prediction.step_time_high)));
  lines.push_back(fmt::format(
      "{} tokens/s, {} tokens/s/GPU, {} TFLOP/s/GPU", number_text(prediction.tokens_per_s),
      number_text(prediction.tokens_per_s_per_gpu), number_text(prediction.model_tflops_per_gpu)));
  std::string use = use_words(prediction);
  if (scenario.layout.pp > 1) {
    use += fmt::format(", bubble {} (mean of ranks)", percent_text(prediction.bubble_fraction));
  }
  lines.push_back(std::move(use));
  std::string losses;
  for (const TimePart& loss : largest_losses(prediction.waterfall, prediction.step_time, 3)) {
    losses += fmt::format("{}{} {}", losses.empty() ? "" : ", ", loss.label,
                          percent_text(loss.time / prediction.step_time));
  }
  if (!losses.empty()) lines.push_back("largest losses: " + losses);
  return lines;
}

Written box(const std::vector<std::string>& words, std::string_view color, Form form) {
  std::vector<std::string> lines;
  for (const std::string& line : words) lines.push_back(terminal_line(line));
  std::size_t width = 0;
  for (const std::string& line : lines) width = std::max(width, display_width(line));
  std::string rule;
  for (std::size_t i = 0; i < width + 2; ++i) rule += "─";
  std::string out = "╭" + rule + "╮\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string line = padded(lines[i], width);
    out += i == 0 && form == Form::kColored ? fmt::format("│ \x1b[1;{}m{}\x1b[0m │\n", color, line)
                                            : fmt::format("│ {} │\n", line);
  }
  return Written::escaped(out + "╰" + rule + "╯\n");
}

TextTable time_table(const Prediction& prediction, bool bars) {
  const TimeUnit unit = unit_of(prediction.step_time);
  std::vector<Column> columns{{"where", Align::kLeft}, {unit.name}, {"share"}};
  if (bars) columns.push_back({"", Align::kLeft});
  TextTable table(std::move(columns));
  for (const TimePart& part : parts_of(prediction.time)) {
    if (part.time.value() == 0) continue;
    const double share = part.time / prediction.step_time;
    std::vector<std::string> row{part.label, in_unit(part.time, unit), percent_text(share)};
    if (bars) row.push_back(bar_text(0, share, kBarWidth));
    table.add_row(std::move(row));
  }
  return table;
}

TextTable waterfall_table(const Prediction& prediction, bool bars) {
  const TimeUnit unit = unit_of(prediction.step_time);
  std::vector<Column> columns{{"step", Align::kLeft}, {unit.name}, {"sum"}};
  if (bars) columns.push_back({"", Align::kLeft});
  TextTable table(std::move(columns));
  Seconds sum;
  for (const TimePart& step : steps_of(prediction.waterfall)) {
    if (step.time.value() == 0) continue;
    const double start = sum / prediction.step_time;
    sum += step.time;
    std::vector<std::string> row{step.label, in_unit(step.time, unit), in_unit(sum, unit)};
    if (bars) row.push_back(bar_text(start, step.time / prediction.step_time, kBarWidth));
    table.add_row(std::move(row));
  }
  std::vector<std::string> last{"step time", "", in_unit(prediction.step_time, unit)};
  if (bars) last.push_back(bar_text(0, 1, kBarWidth));
  table.add_row(std::move(last));
  return table;
}

TextTable memory_table(const Prediction& prediction) {
  const std::vector<const RankClass*> classes = fullest_by_stage(prediction);
  std::vector<Column> columns{{"stage"}, {"ranks"}};
  std::vector<std::size_t> shown;  // parts that some stage has
  for (std::size_t part = 0; part < kMemoryCategories; ++part) {
    if (std::all_of(classes.begin(), classes.end(),
                    [&](const RankClass* one) { return one->memory[part] == 0; })) {
      continue;
    }
    shown.push_back(part);
    columns.push_back({name_of(static_cast<MemoryCategory>(part))});
  }
  for (const char* title : {"allocated", "reserved", "framework", "device", "used"}) {
    columns.push_back({title});
  }
  TextTable table(std::move(columns));
  for (const RankClass* rank_class : classes) {
    std::size_t ranks = 0;
    for (const RankClass& other : prediction.rank_classes) {
      if (other.stage == rank_class->stage) ranks += other.ranks.size();
    }
    std::vector<std::string> row{fmt::format("{}", rank_class->stage), fmt::format("{}", ranks)};
    for (const std::size_t part : shown) row.push_back(gib_text(rank_class->memory[part]));
    row.push_back(gib_text(rank_class->peak_memory));
    row.push_back(gib_text(rank_class->reserved_bytes));
    row.push_back(gib_text(rank_class->framework_bytes));
    row.push_back(gib_text(device_bytes(*rank_class)));
    row.push_back(
        percent_text(static_cast<double>(device_bytes(*rank_class)) /
                         static_cast<double>(std::max<ByteCount>(prediction.device_memory, 1)),
                     0));
    table.add_row(std::move(row));
  }
  return table;
}

TextTable path_table(const Prediction& prediction) {
  const TimeUnit unit = unit_of(prediction.step_time);
  TextTable table({{"what", Align::kLeft}, {unit.name}, {"share"}});
  const std::size_t shown = std::min(prediction.critical_path.size(), kPathSteps);
  for (std::size_t i = 0; i < shown; ++i) {
    const PathStep& step = prediction.critical_path[i];
    table.add_row(
        {step.what, in_unit(step.time, unit), percent_text(step.time / prediction.step_time)});
  }
  if (shown < prediction.critical_path.size()) {
    table.add_row({fmt::format("and {} more", prediction.critical_path.size() - shown), "", ""});
  }
  return table;
}

TextTable outer_table(const Scenario& scenario, const Prediction& prediction) {
  const OuterSteps& stated = scenario.training.outer;
  const OuterStep& outer = prediction.outer;
  const double every = static_cast<double>(stated.every);
  TextTable table({{"outer step", Align::kLeft}, {""}});
  table.add_row({"inner step", time_text(outer.inner_step)});
  const std::string of =
      stated.fragments > 1 ? fmt::format(" of {} fragments", stated.fragments) : std::string();
  table.add_row(
      {"sent out of an island" + of, fmt::format("{:.4g} GB", outer.sent.value() * 1e-9)});
  table.add_row({stated.fragments > 1 ? "a fragment's meeting takes" : "the meeting takes",
                 time_text(outer.message)});
  if (!outer.bound_by.empty()) {
    table.add_row(
        {"bound by", fmt::format("{} ({} of it)", outer.bound_by, percent_text(outer.full, 0))});
  }
  if (stated.overlap_steps > 0) {
    table.add_row({fmt::format("beside {} steps it needs", stated.overlap_steps),
                   fmt::format("{:.4g} Gb/s", outer.to_hide.value() * 8e-9)});
  }
  table.add_row({fmt::format("exposed, once in {} steps", stated.every), time_text(outer.exposed)});
  table.add_row({"outer update", time_text(outer.update)});
  table.add_row({"mean step is longer by", time_text((outer.exposed + outer.update) / every)});
  return table;
}

TextTable jobs_table(const Scenario& scenario, const Prediction& prediction) {
  const JobsBeside& beside = prediction.beside;
  TextTable table({{"job", Align::kLeft}, {"step"}, {"alone"}, {"lost"}});
  const auto add = [&](const std::string& job, Seconds step, Seconds alone) {
    table.add_row({job, time_text(step), time_text(alone), percent_text(1 - alone / step)});
  };
  add("this one", prediction.step_time, beside.alone);
  for (std::size_t j = 0; j < beside.steps.size(); ++j) {
    const OtherJob& other = scenario.other_jobs[j];
    const std::string& model = other.scenario->model.name;
    add(fmt::format("{} on nodes {}", model.empty() ? "model" : model, other.nodes),
        beside.steps[j], beside.steps_alone[j]);
  }
  return table;
}

TextTable shared_link_table(const Prediction& prediction) {
  TextTable table({{"link of several jobs", Align::kLeft}, {"full by this one"}, {"by others"}});
  for (const SharedLink& link : prediction.beside.links) {
    table.add_row({link.name, percent_text(link.own), percent_text(link.others)});
  }
  return table;
}

std::string provenance_text(const Prediction& prediction) {
  std::string out;
  for (int i = 0; i < kProvenances; ++i) {
    const double share = prediction.provenance[static_cast<std::size_t>(i)];
    if (share <= 0) continue;
    std::string name = name_of(static_cast<Provenance>(i));
    std::replace(name.begin(), name.end(), '_', ' ');
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, percent_text(share));
  }
  return out;
}

}  // namespace

Written prediction_table(const Scenario& scenario, const Prediction& prediction, Form form) {
  const bool markdown = form == Form::kMarkdown;
  Written out =
      title(headline(scenario), form) + line(model_and_layout_text(scenario), form) + "\n";
  const auto lines = verdict_lines(scenario, prediction);
  if (!markdown) out += box(lines, color_of(verdict_of(prediction)), form);
  if (markdown) {
    for (const std::string& one : lines) out += bullet(one, form);
  }
  if (!prediction.fits) out += paragraph_end(form) + line(kNextStep, form);
  out += heading("Where the time goes, on the critical rank", form);
  out += shown(time_table(prediction, !markdown), form);
  out += heading("From ideal FLOP time to step time", form);
  out += shown(waterfall_table(prediction, !markdown), form);
  if (!prediction.beside.steps.empty()) {
    out += heading("Jobs on one fabric", form);
    out += shown(jobs_table(scenario, prediction), form);
    if (!prediction.beside.links.empty()) out += "\n" + shown(shared_link_table(prediction), form);
  }
  if (prediction.outer.islands > 0) {
    out += heading(fmt::format("Outer steps of {} islands", prediction.outer.islands), form);
    out += shown(outer_table(scenario, prediction), form);
  }
  out += heading("Memory in GiB at the peak, fullest rank of each stage", form);
  out += shown(memory_table(prediction), form);
  if (!prediction.critical_path.empty()) {
    out += heading("Critical path", form) + shown(path_table(prediction), form);
  }
  if (const std::string based_on = provenance_text(prediction); !based_on.empty()) {
    out += "\n" +
           line("Costs: " + based_on + " of the critical path's busy time" + (markdown ? "." : ""),
                form);
  }
  return out;
}

}  // namespace stepcast
