// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/json_tree.h"
#include "report/html/data_table.h"
#include "report/html/page.h"
#include "report/html/run_section.h"
#include "report/html/scatter.h"
#include "report/html/views.h"
#include "report/number_text.h"
#include "report/offers_report.h"
#include "report/plan_report.h"
#include "report/run_columns.h"

namespace stepcast {
namespace {

using namespace html;

double gpus(const Offer& offer) { return static_cast<double>(offer.gpus()); }
const Prediction& forecast(const Offer& offer) { return offer.best->found.prediction; }

std::string title_of(const OffersReport& report, std::size_t index) {
  const Offer& offer = report.offers[index];
  const bool length = has_length(report);
  std::string out =
      fmt::format("place {}: {} of {}, {} a step", place_of(report, index), gpus_noun(offer),
                  offer.request.label, time_text(forecast(offer).step_time));
  const std::vector<Column> columns = run_columns(length);
  const std::vector<RunCell> cells = run_cells(offer.best->run, length);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    out += fmt::format(", {} {}", columns[i].title, cells[i].text);
  }
  return out + ": " + choice_text(*offer.planner, offer.best->found.choice);
}

// A curve for each cluster, in order of the GPUs; `y` of an offer that has none is not finite.
template <class X, class Y>
std::vector<ScatterSeries> curves(const OffersReport& report, X x, Y y) {
  std::map<std::string, std::vector<std::size_t>> by_cluster;
  for (const std::size_t index : report.ranking.order) {
    if (std::isfinite(y(report.offers[index]))) {
      by_cluster[report.offers[index].request.label].push_back(index);
    }
  }
  std::vector<ScatterSeries> out;
  for (auto& [label, offers] : by_cluster) {
    if (out.size() == kMostSeries) break;
    std::stable_sort(offers.begin(), offers.end(), [&](std::size_t a, std::size_t b) {
      return gpus(report.offers[a]) < gpus(report.offers[b]);
    });
    ScatterSeries series{label, {}, true};
    for (const std::size_t index : offers) {
      const Offer& offer = report.offers[index];
      ScatterSeries::Point point{x(offer), y(offer), title_of(report, index)};
      point.tag = gpus_text(offer);
      point.hollow = !meets_limits(*offer.best);
      series.points.push_back(std::move(point));
    }
    out.push_back(std::move(series));
  }
  return out;
}

std::string count(double value) { return number_text(value, 3); }

// Shows what a faster run costs: wall time against money.
Html money_chart(const OffersReport& report) {
  constexpr double kSecondsPerDay = 86400;
  const bool length = has_length(report);
  Scatter scatter;
  scatter.label = "cost against time, a curve for each cluster";
  scatter.x = {length ? "days" : "seconds per step, interruptions included",
               ValueAxis::Scale::kLogarithmic, count};
  scatter.y = {length ? "cost" : "cost per million tokens", ValueAxis::Scale::kLogarithmic,
               dollars_text};
  scatter.series = curves(
      report,
      [&](const Offer& offer) {
        const RunForecast& run = offer.best->run.forecast;
        return length && run.length ? run.length->wall_s.value / kSecondsPerDay
                                    : wall_s_per_step(forecast(offer).step_time, run);
      },
      [](const Offer& offer) { return cost_of(offer.best->run.forecast); });
  const RunTerms& terms = first_of(report).best->run.terms;
  if (terms.deadline) {
    scatter.limit = terms.deadline->value() / kSecondsPerDay;
    scatter.limit_label = "deadline";
  }
  return scatter_chart(scatter);
}

Html rate_chart(const OffersReport& report, bool per_gpu) {
  Scatter scatter;
  const char* unit = per_gpu ? "tokens/s per GPU" : "tokens/s";
  scatter.label = fmt::format("{} over GPUs, a curve for each cluster", unit);
  scatter.x = {"GPUs", ValueAxis::Scale::kLogarithmic, count_text};
  scatter.y = {unit, per_gpu ? ValueAxis::Scale::kLinear : ValueAxis::Scale::kLogarithmic, count};
  scatter.series = curves(report, gpus, [&](const Offer& offer) {
    return per_gpu ? forecast(offer).tokens_per_s_per_gpu : forecast(offer).tokens_per_s;
  });
  return scatter_chart(scatter);
}

bool any_price(const OffersReport& report) {
  return std::ranges::any_of(report.ranking.order, [&](std::size_t index) {
    return std::isfinite(cost_of(report.offers[index].best->run.forecast));
  });
}

Section chart_section(const OffersReport& report) {
  std::vector<View> shown;
  if (any_price(report)) shown.push_back({"cost against time", money_chart(report)});
  shown.push_back({"tokens/s per GPU", rate_chart(report, true)});
  shown.push_back({"tokens/s", rate_chart(report, false)});
  return {"offers-chart", "Time and money",
          views("offers-views", "Show", shown) +
              note("Beside each point its number of GPUs. Hollow points miss a limit. Offers "
                   "without a price have no cost.")};
}

std::string cost_interval_text(const RunForecast& run) {
  if (!run.length || !run.length->dollars) return "";
  return range_text(dollars_text(run.length->dollars->low),
                    dollars_text(run.length->dollars->high));
}

bool has_deadline(const OffersReport& report) {
  return first_of(report).best->run.terms.deadline.has_value() && has_length(report);
}

// Money first: a phone shows the first columns alone.
template <class Cell>
void goodput_last(std::vector<Cell>& of_run, bool length) {
  const auto goodput = of_run.begin() + (length ? 1 : 0);
  std::rotate(goodput, goodput + 1, of_run.end());
}

Section place_section(const OffersReport& report) {
  const bool length = has_length(report);
  std::vector<DataColumn> columns = {{"place", true}, {"cluster"}, {"GPUs", true}};
  std::vector<Column> of_run = run_columns(length);
  goodput_last(of_run, length);
  for (const Column& column : of_run) columns.push_back({column.title, true});
  if (length) columns.push_back({"cost, central 90 %", true, false});
  if (has_deadline(report)) columns.push_back({"in time", true});
  columns.push_back({"step", true});
  columns.push_back({"tokens/s", true});
  columns.push_back({"against the first", false, true, true});
  columns.push_back({"layout", false, true, true});
  DataTable table("offers", "The best layout of each offer", columns);
  std::size_t place = 0;
  for (const std::size_t index : report.ranking.order) {
    const Offer& offer = report.offers[index];
    const Prediction& p = forecast(offer);
    ++place;
    std::vector<DataCell> cells = {
        {fmt::format("{}{}", place, offer.result->proven ? "" : "*"), static_cast<double>(place)},
        offer.request.label,
        {gpus_text(offer), gpus(offer)}};
    std::vector<DataCell> of_offer = run_data_cells(offer.best->run, length);
    goodput_last(of_offer, length);
    for (DataCell& cell : of_offer) cells.push_back(std::move(cell));
    if (length) cells.emplace_back(cost_interval_text(offer.best->run.forecast));
    if (has_deadline(report)) {
      const auto& run = offer.best->run.forecast.length;
      const double chance = run ? *run->deadline_chance : 0;
      cells.emplace_back(chance_text(chance), chance);
    }
    cells.emplace_back(time_text(p.step_time), p.step_time.value());
    cells.emplace_back(number_text(p.tokens_per_s, 3), p.tokens_per_s);
    cells.push_back(offer_reason(report, offer));
    cells.push_back(choice_text(*offer.planner, offer.best->found.choice));
    table.add_row(cells);
  }
  return {"place-section", "Offers",
          table.html() + note("* the best found of its offer; --prove makes it certain.")};
}

Section answer_section(const OffersReport& report) {
  Html body;
  for (const std::string& line : answer_lines(report)) body += paragraph(line);
  return {"answers", "Answers", body};
}

Section without_place_section(const OffersReport& report) {
  DataTable table("without-place", "Offers without a layout",
                  {{"cluster"}, {"GPUs", true}, {"why", false, true, true}});
  for (const std::size_t index : report.ranking.others) {
    const Offer& offer = report.offers[index];
    table.add_row({offer.request.label, {gpus_text(offer), gpus(offer)}, no_place_reason(offer)});
  }
  return {"without-place-section", "Without a place", table.html()};
}

std::vector<KeyFigure> figures_of(const OffersReport& report) {
  const Offer& first = first_of(report);
  std::vector<KeyFigure> out = {{"First place", gpus_noun(first), first.request.label},
                                {"Step", time_text(forecast(first).step_time), ""}};
  const std::vector<Column> columns = run_columns(has_length(report));
  const std::vector<RunCell> cells = run_cells(first.best->run, has_length(report));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string title = columns[i].title;
    title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
    out.push_back({std::move(title), cells[i].text, ""});
  }
  return out;
}

}  // namespace

Written offers_html(const OffersReport& report) {
  Page page;
  page.title = offers_headline(report);
  page.verdict = offers_decision(report);
  page.verdict += (page.verdict.empty() ? "" : " ") + offers_verdict(report);
  page.mood = report.ranking.order.empty() ? Mood::kBad
              : totals_of(report).proven   ? Mood::kGood
                                           : Mood::kWarning;
  if (!report.ranking.order.empty()) {
    page.figures = figures_of(report);
    page.sections = {answer_section(report), chart_section(report), place_section(report)};
  }
  if (!report.ranking.others.empty()) page.sections.push_back(without_place_section(report));
  page.data = offers_json(report);
  return page_text(page);
}

}  // namespace stepcast
