// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/plan_report.h"
#include "report/text_form.h"

namespace stepcast {
namespace {

constexpr std::size_t kRules = 6;
constexpr std::size_t kTooLarge = 3;

std::string count_text(double count) {
  return count < 1000 ? fmt::format("{:.0f}", count) : number_text(count, 3);
}

std::string verdict(const PlanReport& report) {
  const SearchResult& result = report.result;
  if (result.found.empty()) {
    return result.proven ? fmt::format("No layout fits in {} GiB.", gib_text(result.memory_limit))
                         : std::string("No layout that fits was found.");
  }
  if (result.proven) {
    return "No layout of the space is faster: certain, as the engine sees it.";
  }
  if (result.bound_s <= 0) {
    return fmt::format(
        "The best of {} replayed layouts; the search ended before it had bounded all the others.",
        result.replayed);
  }
  const double best = result.found.front().prediction.step_time.value();
  return fmt::format(
      "The best of {} replayed layouts; none of the others is faster than {} ({}). "
      "--prove makes it certain.",
      result.replayed, time_text(Seconds(result.bound_s)),
      signed_percent_text(result.bound_s / best - 1, 2));
}

std::string ranking(const PlanReport& report, Form form) {
  TextTable table({{"place"},
                   {"step"},
                   {"tokens/s/GPU"},
                   {"MFU"},
                   {"GiB"},
                   {"layout", Align::kLeft},
                   {"why", Align::kLeft}});
  std::size_t place = 0;
  for (const PlanRow& row : plan_rows(report)) {
    const Prediction& p = row.found->prediction;
    std::string layout = choice_text(report.planner, row.found->choice);
    if (row.equals > 0) layout += fmt::format(" (and {} equal)", row.equals);
    table.add_row({fmt::format("{}", ++place), time_text(p.step_time),
                   number_text(p.tokens_per_s_per_gpu), percent_text(p.mfu),
                   gib_text(p.peak_device), layout, reason(report, *row.found)});
  }
  return shown(table, form);
}

std::string front(const PlanReport& report, Form form) {
  TextTable table({{"GiB"}, {"step"}, {"GPUs"}, {"layout", Align::kLeft}});
  for (const std::size_t index : report.result.front) {
    const FoundLayout& found = report.result.found[index];
    table.add_row({gib_text(found.prediction.peak_device), time_text(found.prediction.step_time),
                   fmt::format("{}", report.planner.space().base().cluster.gpus()),
                   choice_text(report.planner, found.choice)});
  }
  return shown(table, form);
}

std::string search_lines(const PlanReport& report, Form form) {
  const SearchResult& r = report.result;
  std::string out;
  out += bullet(fmt::format("{} combinations of the open keys; {} layouts are legal and differ",
                            count_text(r.combinations), count_text(static_cast<double>(r.bounded))),
                form);
  out += bullet(fmt::format("{} need more than {} GiB by the bound on memory, {} more by replay",
                            count_text(static_cast<double>(r.cut_by_memory)),
                            gib_text(r.memory_limit), r.replayed_too_large),
                form);
  if (r.proven && !r.found.empty()) {
    out += bullet(fmt::format("{} are no faster than the last place by the bound on time",
                              count_text(static_cast<double>(r.cut_by_time))),
                  form);
  }
  out += bullet(fmt::format("{} replayed by the engine", r.replayed), form);
  return out;
}

std::string rejections(const PlanReport& report, Form form) {
  const SearchResult& r = report.result;
  std::vector<std::pair<std::string, RuleCount>> rules(r.space.rules.begin(), r.space.rules.end());
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
    return a.second.subtrees > b.second.subtrees;
  });
  if (rules.size() > kRules) rules.resize(kRules);
  std::string out;
  for (const auto& [key, rule] : rules) {
    out += bullet(fmt::format("{}: {} branches, as: {}", key,
                              count_text(static_cast<double>(rule.subtrees)), rule.example.message),
                  form);
  }
  for (std::size_t i = 0; i < std::min(kTooLarge, r.too_large.size()); ++i) {
    const RejectedLayout& large = r.too_large[i];
    out +=
        bullet(fmt::format("{}: needs {} of {} GiB (at best {})",
                           choice_text(report.planner, large.choice), gib_text(large.device_bytes),
                           gib_text(r.memory_limit), time_text(Seconds(large.bound_s))),
               form);
  }
  return out;
}

std::string answer(const PlanReport& report, const WhyNot& why, Form form) {
  if (!why.rules.empty()) {
    std::string out;
    for (const Error& error : why.rules) {
      out += bullet(fmt::format("{}: refused: {}", why.asked, to_string(error)), form);
    }
    return out;
  }
  if (why.large) {
    return bullet(fmt::format("{}: nothing fits; the least is {} of {} GiB: {}", why.asked,
                              gib_text(why.large->device_bytes),
                              gib_text(report.result.memory_limit), why.layout),
                  form);
  }
  if (!why.best) return bullet(fmt::format("{}: nothing was replayed", why.asked), form);
  const Prediction& p = why.best->prediction;
  if (report.result.found.empty()) {
    return bullet(fmt::format("{}: {}: {}", why.asked, time_text(p.step_time), why.layout), form);
  }
  const double best = report.result.found.front().prediction.step_time.value();
  const double slower = p.step_time.value() / best - 1;
  return bullet(fmt::format("{}: {}{} ({} against the first): {}", why.asked,
                            why.proven ? "" : "at best found ", time_text(p.step_time),
                            signed_percent_text(slower, 2), why.layout),
                form) +
         bullet("  " + why.reason, form);
}

std::string written(const PlanReport& report, Form form) {
  std::string out = form == Form::kMarkdown ? "## Plan\n\n" : "";
  out += headline(report.planner.space().base()) + "\n";
  out += (form == Form::kMarkdown ? "\n" : "") + verdict(report) + "\n";
  if (!report.result.found.empty()) {
    out += heading("Layouts", form) + ranking(report, form);
  }
  if (report.result.front.size() > 1) {
    out += heading("Less memory", form) + front(report, form);
  }
  if (!report.why_not.empty()) {
    out += heading("Why not", form);
    for (const WhyNot& why : report.why_not) out += answer(report, why, form);
  }
  out += heading("The search", form) + search_lines(report, form);
  const std::string rejected = rejections(report, form);
  if (!rejected.empty()) out += heading("Rejected", form) + rejected;
  return out;
}

}  // namespace

std::string plan_table(const PlanReport& report) { return written(report, Form::kText); }
std::string plan_markdown(const PlanReport& report) { return written(report, Form::kMarkdown); }

}  // namespace stepcast
