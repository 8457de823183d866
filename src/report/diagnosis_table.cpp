// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/breakdown.h"
#include "report/diagnosis_numbers.h"
#include "report/diagnosis_report.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kKernels = 15;

std::string ratio_text(double measured, double forecast) {
  return forecast > 0 ? fmt::format("{:.2f}", measured / forecast) : "";
}

TextTable compared_parts(const Diagnosis& diagnosis) {
  TextTable table({{"where", Align::kLeft}, {"forecast"}, {"measured"}, {"gap"}, {"of the step"}});
  for (const ComparedPart& one : diagnosis.parts) {
    const double gap = one.measured_s - one.forecast_s;
    table.add_row({one.words, signed_time_text(one.forecast_s), signed_time_text(one.measured_s),
                   signed_time_text(gap), signed_percent_text(gap / diagnosis.measured_s)});
  }
  const double gap = diagnosis.measured_s - diagnosis.forecast_s;
  table.add_row({"step", signed_time_text(diagnosis.forecast_s),
                 signed_time_text(diagnosis.measured_s), signed_time_text(gap),
                 signed_percent_text(gap / diagnosis.measured_s)});
  return table;
}

TextTable compared_kernels(const Diagnosis& diagnosis) {
  TextTable table({{"kernels", Align::kLeft},
                   {"calls forecast"},
                   {"measured"},
                   {"time forecast"},
                   {"measured"},
                   {"ratio"}});
  for (const ComparedKernels& one : diagnosis.kernels) {
    if (&one - diagnosis.kernels.data() >= static_cast<std::ptrdiff_t>(kKernels)) break;
    table.add_row({one.words, fmt::format("{}", one.forecast.calls),
                   fmt::format("{}", one.measured.calls), signed_time_text(one.forecast.busy_s),
                   signed_time_text(one.measured.busy_s),
                   ratio_text(one.measured.busy_s, one.forecast.busy_s)});
  }
  return table;
}

TextTable compared_messages(const Diagnosis& diagnosis) {
  TextTable table({{"collective", Align::kLeft},
                   {"ranks"},
                   {"calls forecast"},
                   {"measured"},
                   {"bytes forecast"},
                   {"measured"},
                   {"busbw forecast"},
                   {"measured"},
                   {"exposed forecast"},
                   {"measured"},
                   {"late calls"},
                   {"waits for ranks"}});
  for (const ComparedMessages& one : diagnosis.messages) {
    table.add_row({one.words, one.ranks > 0 ? fmt::format("{}", one.ranks) : "",
                   fmt::format("{}", one.forecast.calls), fmt::format("{}", one.measured.calls),
                   message_bytes_text(one.forecast.bytes), message_bytes_text(one.measured.bytes),
                   message_rate_text(one.bandwidth(one.forecast)),
                   message_rate_text(one.bandwidth(one.measured, one.waited_s)),
                   signed_time_text(one.forecast.exposed_s),
                   signed_time_text(one.measured.exposed_s),
                   fmt::format("{}", one.measured.late_calls), signed_time_text(one.waited_s)});
  }
  return table;
}

TextTable compared_ranks(const Diagnosis& diagnosis) {
  TextTable table({{"rank"},
                   {"stage"},
                   {"step"},
                   {"compute"},
                   {"of its forecast"},
                   {"exposed"},
                   {"idle"},
                   {"others waited for it"}});
  for (const RankRow& one : diagnosis.ranks) {
    table.add_row({fmt::format("{}", one.rank.value), fmt::format("{}", one.stage),
                   signed_time_text(one.step_s), signed_time_text(one.compute_s),
                   percent_text(one.ratio), signed_time_text(one.exposed_s),
                   signed_time_text(one.idle_s), signed_time_text(one.caused_s)});
  }
  return table;
}

std::string step_words(const Diagnosis& diagnosis) {
  const auto& all = diagnosis.step_lengths_s;
  std::string out = fmt::format("Rank {}", diagnosis.rank.value);
  if (all.size() > 1) {
    const auto [least, most] = std::ranges::minmax(all);
    out += fmt::format(", the median of {} steps ({} to {})", all.size(), signed_time_text(least),
                       signed_time_text(most));
  } else if (diagnosis.steps_from == StepSource::kMarks) {
    out += fmt::format(", step {}", diagnosis.step_number);
  }
  return out + fmt::format("; {} of the step are accounted for", percent_text(diagnosis.accounted));
}

Written gap_lines(const Diagnosis& diagnosis, Form form) {
  Written out;
  for (const Gap& gap : diagnosis.gaps) {
    out += bullet(
        fmt::format("{} ({} of the step). Try: {}.", gap_sentence(gap, diagnosis),
                    signed_percent_text(gap.seconds / diagnosis.measured_s), gap_remedy(gap)),
        form);
  }
  return out;
}

}  // namespace

Written diagnosis_table(const Scenario& scenario, const Diagnosis& diagnosis, Form form) {
  Written out =
      title(headline(scenario), form) + line(model_and_layout_text(scenario), form) + "\n";
  out += strong_line(diagnosis_verdict(diagnosis), form) + paragraph_end(form);
  out += line(step_words(diagnosis), form);
  if (!diagnosis.gaps.empty()) {
    out += heading("Gaps of more than 1 % of the step", form) + gap_lines(diagnosis, form);
  }
  out += heading("Where the step goes", form) + shown(compared_parts(diagnosis), form);
  out += heading("Kernels, the largest difference first", form) +
         shown(compared_kernels(diagnosis), form);
  if (!diagnosis.messages.empty()) {
    out += heading("Collectives", form) + shown(compared_messages(diagnosis), form);
  }
  if (diagnosis.ranks.size() > 1) {
    out += heading("Ranks", form) + shown(compared_ranks(diagnosis), form);
  }
  if (!diagnosis.notes.empty()) {
    out += "\n";
    for (const std::string& note : diagnosis.notes) out += bullet("note: " + note, form);
  }
  return out;
}

}  // namespace stepcast
