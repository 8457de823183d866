// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/document_form.h"
#include "report/number_text.h"
#include "report/offers_report.h"
#include "report/plan_report.h"
#include "report/run_columns.h"

namespace stepcast {
namespace {

const Offer& first_of(const OffersReport& report) {
  return report.offers[report.ranking.order.front()];
}

bool has_length(const OffersReport& report) {
  return first_of(report).best->run.terms.tokens.has_value();
}

std::string objective_text(Objective objective) {
  switch (objective) {
    case Objective::kStepTime:
      return "step time";
    case Objective::kCost:
      return "cost";
    case Objective::kGoodput:
      return "tokens per second of wall time";
  }
  return "";
}

// What all offers have in common.
std::string headline_of(const OffersReport& report) {
  const auto searched = std::find_if(report.offers.begin(), report.offers.end(),
                                     [](const Offer& offer) { return offer.planner != nullptr; });
  const Scenario& base = searched->planner->space().base();
  std::string out = fmt::format(
      "{} {}, {} sequences of {} tokens", base.model.name.empty() ? "model" : base.model.name,
      name_of(base.training.precision), base.training.global_batch, base.training.sequence_length);
  if (base.run && base.run->tokens) {
    out += fmt::format(", {} tokens in all",
                       parameters_text(static_cast<std::int64_t>(*base.run->tokens)));
  }
  out += fmt::format(": {} by {}",
                     report.offers.size() == 1 ? std::string("one offer")
                                               : fmt::format("{} offers", report.offers.size()),
                     objective_text(report.objective));
  if (base.run && base.run->deadline) {
    out += fmt::format(", deadline {}", duration_text(*base.run->deadline));
  }
  if (base.run && base.run->budget) {
    out += fmt::format(", budget {}", dollars_text(*base.run->budget));
  }
  return out + "\n";
}

std::string verdict(const OffersReport& report) {
  if (report.ranking.order.empty()) return "No layout fits on any of them.\n";
  const auto ranked = report.ranking.order.size();
  std::size_t certain = 0;
  for (const std::size_t i : report.ranking.order) certain += report.offers[i].result->proven;
  if (certain == ranked) {
    return "The layout of every place is the best of its offer: certain, as the engine sees it.\n";
  }
  const std::string found = "; * marks the best found, which --prove makes certain.\n";
  if (certain == 0) return "No layout is certain to be the best of its offer" + found;
  return fmt::format("The layouts of {} of {} places are certain to be the best of their offers{}",
                     certain, ranked, found);
}

std::string ranking(const OffersReport& report, Form form) {
  const bool length = has_length(report);
  std::vector<Column> columns = {
      {"place"}, {"cluster", Align::kLeft}, {"GPUs"}, {"step"}, {"tokens/s"}};
  for (Column& column : run_columns(length)) columns.push_back(std::move(column));
  columns.push_back({"against the first", Align::kLeft});
  columns.push_back({"layout", Align::kLeft, true});
  TextTable table(std::move(columns));
  std::size_t place = 0;
  for (const std::size_t i : report.ranking.order) {
    if (++place > report.top) break;
    const Offer& offer = report.offers[i];
    const Prediction& p = offer.best->found.prediction;
    std::vector<std::string> cells = {fmt::format("{}{}", place, offer.result->proven ? "" : "*"),
                                      offer.request.label, gpus_text(offer), time_text(p.step_time),
                                      number_text(p.tokens_per_s, 3)};
    for (std::string& cell : run_cells(offer.best->run, length)) cells.push_back(std::move(cell));
    cells.push_back(offer_reason(report, offer));
    cells.push_back(choice_text(*offer.planner, offer.best->found.choice));
    table.add_row(std::move(cells));
  }
  return shown(table, form);
}

std::string gpus_noun(const Offer& offer) {
  const std::string count = gpus_text(offer);
  return count + (count == "1" ? " GPU" : " GPUs");
}

std::string answers(const OffersReport& report, Form form) {
  std::string out;
  for (const NamedAnswer& answer : named_answers(report)) {
    const Offer& offer = report.offers[answer.offer];
    const RunForecast& run = offer.best->run.forecast;
    std::string line = fmt::format("{}: {} of {} (place {})", answer.text, gpus_noun(offer),
                                   offer.request.label, place_of(report, answer.offer));
    if (run.length) {
      line += fmt::format(": {}", duration_text(Seconds(run.length->wall_s.value)));
      if (run.length->dollars) {
        line += fmt::format(", {}", dollars_text(run.length->dollars->value));
      }
    }
    out += bullet(line, form);
  }
  const RunTerms& terms = first_of(report).best->run.terms;
  const OfferRanking& ranking = report.ranking;
  if (terms.deadline && !ranking.cheapest_within_deadline) {
    const bool any = std::any_of(ranking.order.begin(), ranking.order.end(), [&](std::size_t i) {
      const auto& length = report.offers[i].best->run.forecast.length;
      return length && length->meets_deadline.value_or(false);
    });
    out += bullet(fmt::format("no offer {}meets the deadline of {}", any ? "with a price " : "",
                              duration_text(*terms.deadline)),
                  form);
  }
  if (terms.budget && ranking.cheapest && !ranking.fastest_within_budget) {
    out += bullet(fmt::format("no offer stays within {}", dollars_text(*terms.budget)), form);
  }
  return out;
}

std::string what_binds_first(const OffersReport& report, Form form) {
  const Offer& first = first_of(report);
  return bullet(fmt::format("the first place is {}",
                            binding_text(*first.planner, first.best->found, *first.result)),
                form);
}

std::string without_place(const OffersReport& report, Form form) {
  std::string out;
  for (const std::size_t i : report.ranking.others) {
    const Offer& offer = report.offers[i];
    out += bullet(
        fmt::format("{}, {}: {}", offer.request.label, gpus_noun(offer), no_place_reason(offer)),
        form);
  }
  return out;
}

std::string prices(const OffersReport& report, Form form) {
  std::string out;
  std::set<std::string> said;
  for (const std::size_t i : report.ranking.order) {
    const Offer& offer = report.offers[i];
    if (!said.insert(offer.request.label).second) continue;
    out +=
        bullet(fmt::format("{}: {}", offer.request.label, price_text(offer.best->run.terms)), form);
  }
  return out;
}

std::string front(const OffersReport& report, Form form) {
  TextTable table({{"step"},
                   {"GiB"},
                   {"GPUs"},
                   {has_length(report) ? "cost" : "dollars/M tokens"},
                   {"cluster", Align::kLeft},
                   {"layout", Align::kLeft, true}});
  for (const ParetoPoint& point : report.pareto) {
    const Offer& offer = report.offers[point.offer];
    const Prediction& p = point.layout->found.prediction;
    const auto cells = run_cells(point.layout->run, has_length(report));
    table.add_row({time_text(p.step_time), gib_text(p.peak_device), fmt::format("{}", offer.gpus()),
                   has_length(report) ? cells[2] : cells[1], offer.request.label,
                   choice_text(*offer.planner, point.layout->found.choice)});
  }
  return shown(table, form);
}

std::string search_lines(const OffersReport& report, Form form) {
  const OfferTotals totals = totals_of(report);
  return bullet(
      fmt::format("{} combinations of the open keys; {} layouts are legal and differ; {} need too "
                  "much memory by the bound; {} replayed by the engine",
                  count_text(totals.combinations), count_text(totals.bounded),
                  count_text(totals.cut_by_memory),
                  count_text(static_cast<double>(totals.replayed))),
      form);
}

std::string written(const OffersReport& report, Form form) {
  const bool markdown = form == Form::kMarkdown;
  std::string out = markdown ? "## Plan\n\n" : "";
  out += headline_of(report) + (markdown ? "\n" : "") + verdict(report);
  if (!report.ranking.order.empty()) {
    out += heading("Offers", form) + ranking(report, form);
    out += heading("Answers", form) + answers(report, form) + what_binds_first(report, form);
    if (report.shows_front) {
      out += heading("Best in time, memory, GPUs or money", form) + front(report, form);
    }
  }
  if (!report.ranking.others.empty()) {
    out += heading("Without a place", form) + without_place(report, form);
  }
  if (!report.ranking.order.empty()) out += heading("Prices", form) + prices(report, form);
  return out + heading("The search", form) + search_lines(report, form);
}

}  // namespace

std::string offers_table(const OffersReport& report) { return written(report, Form::kText); }
std::string offers_markdown(const OffersReport& report) { return written(report, Form::kMarkdown); }

}  // namespace stepcast
