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

Written ranking(const OffersReport& report, Form form) {
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
    for (RunCell& cell : run_cells(offer.best->run, length)) cells.push_back(std::move(cell.text));
    cells.push_back(offer_reason(report, offer));
    cells.push_back(choice_text(*offer.planner, offer.best->found.choice));
    table.add_row(std::move(cells));
  }
  return shown(table, form);
}

Written answers(const OffersReport& report, Form form) {
  Written out;
  for (const std::string& line : answer_lines(report)) out += bullet(line, form);
  return out;
}

Written what_binds_first(const OffersReport& report, Form form) {
  const Offer& first = first_of(report);
  return bullet(fmt::format("the first place is {}",
                            binding_text(*first.planner, first.best->found, *first.result)),
                form);
}

Written without_place(const OffersReport& report, Form form) {
  Written out;
  for (const std::size_t i : report.ranking.others) {
    const Offer& offer = report.offers[i];
    out += bullet(
        fmt::format("{}, {}: {}", offer.request.label, gpus_noun(offer), no_place_reason(offer)),
        form);
  }
  return out;
}

Written prices(const OffersReport& report, Form form) {
  Written out;
  std::set<std::string> said;
  for (const std::size_t i : report.ranking.order) {
    const Offer& offer = report.offers[i];
    if (!said.insert(offer.request.label).second) continue;
    out +=
        bullet(fmt::format("{}: {}", offer.request.label, price_text(offer.best->run.terms)), form);
  }
  return out;
}

Written front(const OffersReport& report, Form form) {
  TextTable table({{"step"},
                   {"GiB"},
                   {"GPUs"},
                   {has_length(report) ? "cost" : "$/M tokens"},
                   {"cluster", Align::kLeft},
                   {"layout", Align::kLeft, true}});
  for (const ParetoPoint& point : report.pareto) {
    const Offer& offer = report.offers[point.offer];
    const Prediction& p = point.layout->found.prediction;
    const auto cells = run_cells(point.layout->run, has_length(report));
    table.add_row({time_text(p.step_time), gib_text(p.peak_device), fmt::format("{}", offer.gpus()),
                   cells[has_length(report) ? 2 : 1].text, offer.request.label,
                   choice_text(*offer.planner, point.layout->found.choice)});
  }
  return shown(table, form);
}

Written search_lines(const OffersReport& report, Form form) {
  const OfferTotals totals = totals_of(report);
  return bullet(
      fmt::format(
          "{} combinations of the open keys; {} need too much memory by the bound, {} are no "
          "faster than others by the bound on time; {} replayed by the engine",
          count_text(totals.combinations), count_text(totals.cut_by_memory),
          count_text(totals.cut_by_time), count_text(static_cast<double>(totals.replayed))),
      form);
}

Written written(const OffersReport& report, Form form) {
  Written out = form == Form::kMarkdown ? title("Plan", form) : Written();
  out += line(offers_headline(report), form) + paragraph_end(form);
  if (const std::string decision = offers_decision(report); !decision.empty()) {
    out += line(decision, form) + paragraph_end(form);
  }
  out += line(offers_verdict(report), form);
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
  out += heading("The search", form) + search_lines(report, form);
  if (report.ranking.order.empty()) return out;
  out += heading("In short", form);
  for (const std::string& one : closing_lines(report)) out += bullet(one, form);
  return out;
}

}  // namespace

Written offers_table(const OffersReport& report) { return written(report, Form::kText); }
Written offers_markdown(const OffersReport& report) { return written(report, Form::kMarkdown); }

}  // namespace stepcast
