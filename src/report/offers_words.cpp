// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layout/scenario.h"
#include "plan/space.h"
#include "report/number_text.h"
#include "report/offers_report.h"
#include "report/plan_report.h"
#include "report/run_columns.h"
#include "report/search_gap.h"

namespace stepcast {
namespace {

constexpr double kSame = 0.001;
const char* const kMoreExpensive = "more expensive";

// How `value` compares with `first`, where less is better: "1.9x faster", "4.1 % slower".
struct Comparison {
  std::string text;
  int sign = 0;  // 1: better
};

Comparison compare(double value, double first, const char* better, const char* worse,
                   const char* same) {
  const double ratio = std::max(value / first, first / value);
  if (ratio - 1 < kSame) return {same, 0};
  const bool is_better = value < first;
  const std::string word = is_better ? better : worse;
  // A rate that is so much higher, a price that is so much higher: of the larger of the two.
  if (ratio >= 1.1 && word != kMoreExpensive) {
    return {fmt::format("{:.3g}x {}", ratio, word), is_better ? 1 : -1};
  }
  if (ratio >= 1.1) return {fmt::format("{:.3g} times the cost", ratio), -1};
  return {fmt::format("{} {}", percent_text(ratio - 1), word), is_better ? 1 : -1};
}

std::string joined(const Comparison& one, const Comparison& other) {
  if (one.text.empty() || other.text.empty()) return one.text + other.text;
  const char* between = one.sign * other.sign < 0 ? " but " : ", ";
  return one.text + between + other.text;
}

double wall(const OfferLayout& layout) {
  return wall_s_per_step(layout.found.prediction.step_time, layout.run.forecast);
}

std::string against(const OfferLayout& layout, const OfferLayout& first) {
  Comparison speed, money;
  if (std::isfinite(wall(layout)) && std::isfinite(wall(first))) {
    speed = compare(wall(layout), wall(first), "faster", "slower", "as fast");
  }
  const double cost = cost_of(layout.run.forecast), of_first = cost_of(first.run.forecast);
  if (std::isfinite(cost) && std::isfinite(of_first)) {
    money = compare(cost, of_first, "cheaper", kMoreExpensive, "at the same cost");
  }
  return joined(speed, money);
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

// Which limits a run misses that misses some. The limits themselves stand above the table.
std::string missed_text(const RunForecast& run) {
  if (!run.length) return "never ends";
  const bool late = !run.length->meets_deadline.value_or(true);
  const bool dear = !run.length->within_budget.value_or(true);
  return late && dear ? "misses the deadline and the budget"
         : late       ? "misses the deadline"
                      : "misses the budget";
}

}  // namespace

const Offer& first_of(const OffersReport& report) {
  return report.offers[report.ranking.order.front()];
}

bool has_length(const OffersReport& report) {
  return first_of(report).best->run.terms.tokens.has_value();
}

std::string offers_headline(const OffersReport& report) {
  const auto searched = std::find_if(report.offers.begin(), report.offers.end(),
                                     [](const Offer& offer) { return offer.planner != nullptr; });
  const Scenario& base = searched->planner->space().base();
  std::string out = fmt::format(
      "{} {}, {} sequences of {} tokens", base.model.name.empty() ? "model" : base.model.name,
      base.training.precision_name(), base.training.global_batch, base.training.sequence_length);
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
  return out;
}

bool ended_early(const OffersReport& report) {
  return std::ranges::any_of(report.offers, [](const Offer& offer) {
    return offer.state == OfferState::kNotSearched || (offer.result && offer.result->interrupted);
  });
}

bool was_cut_off(const OffersReport& report) {
  return std::ranges::any_of(report.offers, [](const Offer& offer) {
    return offer.state == OfferState::kNotFound || offer.state == OfferState::kNotSearched;
  });
}

std::string offers_decision(const OffersReport& report) {
  if (report.ranking.order.empty()) return "";
  const Offer& first = first_of(report);
  const OfferLayout& best = *first.best;
  const RunForecast& run = best.run.forecast;
  const bool priced = best.run.terms.dollars_per_gpu_hour.has_value();
  // Offers that keep the limits stand before those that do not.
  const char* what = !meets_limits(best) ? "No offer keeps the limits. The first place is"
                     : priced            ? "Rent"
                                         : "Take";
  std::string out = fmt::format("{} {} of {}: ", what, gpus_noun(first), first.request.label);
  if (run.length) {
    out += duration_text(Seconds(run.length->wall_s.value));
    if (run.length->dollars) out += ", " + dollars_text(run.length->dollars->value);
  } else {
    out += time_text(best.found.prediction.step_time) + " a step";
  }
  for (const std::string& limit : limit_texts(best.run)) out += fmt::format("; it {}", limit);
  if (report.ranking.order.size() > 1) {
    // Compares with the next place in the words of this one.
    const OfferLayout& next = *report.offers[report.ranking.order[1]].best;
    const std::string gain = against(best, next);
    if (!gain.empty()) out += fmt::format("; against the next place {}", gain);
  }
  return out + ".";
}

std::string offers_verdict(const OffersReport& report) {
  if (report.ranking.order.empty()) {
    return was_cut_off(report)
               ? "No layout that fits was found; the search ended before it had looked at all."
               : "No layout fits on any of them.";
  }
  const auto ranked = report.ranking.order.size();
  std::size_t certain = 0;
  for (const std::size_t i : report.ranking.order) certain += report.offers[i].result->proven;
  if (certain == ranked) {
    return "The layout of every place is the best of its offer: certain, as the engine sees it.";
  }
  const std::string found = "; * marks the best found, which --prove makes certain.";
  std::string beaten;
  if (const auto count = std::ranges::count_if(
          report.ranking.order, [&](std::size_t i) { return report.offers[i].behind.has_value(); });
      count > 0) {
    beaten = fmt::format("; {} cannot come first, and {} searched no further", count,
                         count == 1 ? "was" : "were");
  }
  if (certain == 0) return "No layout is certain to be the best of its offer" + beaten + found;
  return fmt::format(
      "The layouts of {} of {} places are certain to be the best of their offers{}{}", certain,
      ranked, beaten, found);
}

std::vector<std::string> closing_lines(const OffersReport& report) {
  const Offer& first = first_of(report);
  const OfferLayout& best = *first.best;
  const RunTerms& terms = best.run.terms;
  std::vector<std::string> out;
  out.push_back(fmt::format("{}: {} of {}{}", terms.dollars_per_gpu_hour ? "rent" : "take",
                            gpus_noun(first), first.request.label,
                            terms.dollars_per_gpu_hour ? fmt::format(" at ${:.2f} per GPU-hour",
                                                                     *terms.dollars_per_gpu_hour)
                                                       : ", whose price is not known"));
  const auto range = [](const std::string& value, const std::string& low, const std::string& high) {
    return fmt::format("{} ({} to {})", value, low, high);
  };
  const Prediction& p = best.found.prediction;
  std::string risks;
  if (const auto& length = best.run.forecast.length) {
    const auto days = [](double s) { return duration_text(Seconds(s)); };
    const FigureRange& wall = length->wall_s;
    out.push_back("it takes " + range(days(wall.value), days(wall.low), days(wall.high)));
    if (const auto& cost = length->dollars) {
      out.back() += ", " + range(dollars_text(cost->value), dollars_text(cost->low),
                                 dollars_text(cost->high));
    }
    risks = fmt::format("about {:.3g} interruptions", length->interruptions);
  } else {
    out.push_back("a step takes " + range(time_text(p.step_time), time_text(p.step_time_low),
                                          time_text(p.step_time_high)));
  }
  out.back() += ", central 90 %";
  for (const std::string& limit : limit_texts(best.run))
    risks += (risks.empty() ? "" : "; ") + limit;
  risks += fmt::format("{}{} of {} GiB of memory are used", risks.empty() ? "" : "; ",
                       gib_text(p.peak_device), gib_text(first.result->memory_limit));
  if (const std::string gap = gap_text(*first.result, p); !gap.empty()) risks += "; " + gap;
  out.push_back("risks: " + risks);
  return out;
}

std::vector<std::string> answer_lines(const OffersReport& report) {
  std::vector<std::string> out;
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
    out.push_back(line);
  }
  const RunTerms& terms = first_of(report).best->run.terms;
  const OfferRanking& ranking = report.ranking;
  if (terms.deadline && !ranking.cheapest_within_deadline) {
    const bool any = std::any_of(ranking.order.begin(), ranking.order.end(), [&](std::size_t i) {
      const auto& length = report.offers[i].best->run.forecast.length;
      return length && length->meets_deadline.value_or(false);
    });
    std::string line = fmt::format("no offer {}meets the deadline of {}",
                                   any ? "with a price " : "", duration_text(*terms.deadline));
    if (!any && ranking.fastest) {
      const auto& length = report.offers[*ranking.fastest].best->run.forecast.length;
      if (length)
        line += fmt::format(": the fastest takes {}", duration_text(Seconds(length->wall_s.value)));
    }
    out.push_back(line);
  }
  if (terms.budget && ranking.cheapest && !ranking.fastest_within_budget) {
    out.push_back(fmt::format("no offer stays within {}", dollars_text(*terms.budget)));
  }
  return out;
}

namespace {

// How far an offer is behind the first even at its bound.
std::string cannot_win_text(double behind, Objective objective) {
  if (!std::isfinite(behind) || behind <= kSame) return "cannot come first";
  const char* worse = objective == Objective::kCost ? kMoreExpensive : "slower";
  return "cannot come first: at best " + compare(1 + behind, 1, "", worse, "").text;
}

}  // namespace

std::string offer_reason(const OffersReport& report, const Offer& offer) {
  const OfferLayout& first = *first_of(report).best;
  std::string out;
  if (&first != &*offer.best) out = against(*offer.best, first);
  const RunTerms& terms = offer.best->run.terms;
  const bool money_matters = report.objective == Objective::kCost || terms.budget;
  if (!terms.dollars_per_gpu_hour && money_matters) {
    out += out.empty() ? "no price" : ", no price";
  }
  if (!meets_limits(*offer.best)) {
    out += (out.empty() ? "" : "; ") + missed_text(offer.best->run.forecast);
  }
  const std::string gap = gap_text(*offer.result, offer.best->found.prediction);
  if (!gap.empty()) out += (out.empty() ? "" : "; ") + gap;
  if (offer.behind)
    out += (out.empty() ? "" : "; ") + cannot_win_text(*offer.behind, report.objective);
  return out;
}

std::string no_place_reason(const Offer& offer) {
  switch (offer.state) {
    case OfferState::kRanked:
      return "";
    case OfferState::kNothingFits: {
      const ByteCount limit = offer.result->memory_limit;
      if (!offer.result->smallest) return fmt::format("nothing fits in {} GiB", gib_text(limit));
      const BoundedLayout& least = *offer.result->smallest;
      return fmt::format("nothing fits: the least is {} of {} GiB, by {}",
                         gib_text(least.device_bytes), gib_text(limit),
                         choice_text(*offer.planner, least.choice));
    }
    case OfferState::kNotFound:
      return "the search ended before it had found a layout that fits";
    case OfferState::kRefused: {
      std::string out;
      for (const Error& error : offer.refused) {
        Error bare = error;
        bare.file.clear();
        out += (out.empty() ? "" : "; ") + to_string(bare);
      }
      return "refused: " + out;
    }
    case OfferState::kNotSearched:
      return "not searched: the search was ended before";
  }
  return "";
}

std::string gpus_text(const Offer& offer) {
  if (!offer.best) return fmt::format("{}", offer.gpus());
  const RunTerms& terms = offer.best->run.terms;
  if (terms.rented_gpus == terms.gpus) return fmt::format("{}", terms.gpus);
  return fmt::format("{} of {}", terms.gpus, terms.rented_gpus);
}

std::string gpus_noun(const Offer& offer) {
  const std::string count = gpus_text(offer);
  return count + (count == "1" ? " GPU" : " GPUs");
}

std::size_t place_of(const OffersReport& report, std::size_t offer) {
  const auto& order = report.ranking.order;
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), offer) - order.begin()) + 1;
}

std::vector<NamedAnswer> named_answers(const OffersReport& report) {
  std::vector<NamedAnswer> out;
  const auto add = [&](const char* key, const std::string& text, std::optional<std::size_t> offer) {
    if (offer) out.push_back({key, text, *offer});
  };
  const OfferRanking& ranking = report.ranking;
  add("cheapest", "the cheapest", ranking.cheapest);
  add("fastest", "the fastest", ranking.fastest);
  if (ranking.order.empty()) return out;
  const RunTerms& terms = report.offers[ranking.order.front()].best->run.terms;
  if (terms.deadline) {
    add("cheapest_within_deadline",
        fmt::format("the cheapest within {}", duration_text(*terms.deadline)),
        ranking.cheapest_within_deadline);
  }
  if (terms.budget) {
    add("fastest_within_budget", fmt::format("the fastest within {}", dollars_text(*terms.budget)),
        ranking.fastest_within_budget);
  }
  return out;
}

OfferTotals totals_of(const OffersReport& report) {
  OfferTotals out;
  for (const Offer& offer : report.offers) {
    if (offer.state == OfferState::kNotSearched) out.proven = false;
    if (!offer.result) continue;
    const SearchResult& result = *offer.result;
    out.combinations += result.combinations;
    out.differing += result.differing();
    out.subtrees += result.subtrees;
    out.bounded += result.bounded;
    out.cut_by_memory += result.cut_by_memory;
    out.cut_by_time += result.cut_by_time;
    out.replayed += result.replayed;
    const bool is_settled = result.proven || offer.behind.has_value();
    if (!is_settled && offer.state != OfferState::kRefused) out.proven = false;
  }
  return out;
}

}  // namespace stepcast
