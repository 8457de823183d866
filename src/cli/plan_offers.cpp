// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_offers.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/key_values.h"
#include "cli/plan_progress.h"
#include "cli/price_notes.h"
#include "cli/stated_scenario.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "launch/signal_watch.h"
#include "layout/keys.h"
#include "plan/offers/gpu_counts.h"
#include "plan/offers/offer_requests.h"
#include "plan/offers/offer_search.h"
#include "plan/space.h"
#include "report/offers_report.h"

namespace stepcast::cli {
namespace {

SortedJson stated_clusters(const SortedJson& scenario) {
  if (!scenario.is_object()) return SortedJson::array();
  const auto plan = scenario.find("plan");
  if (plan == scenario.end() || !plan->is_object()) return SortedJson::array();
  const auto clusters = plan->find("clusters");
  return clusters != plan->end() && clusters->is_array() ? *clusters : SortedJson::array();
}

// Flags that make sense for one cluster only, given beside a list of several.
Errors check_flags(const PlanFlags& flags, bool several) {
  Errors errors;
  const auto refuse = [&](const std::string& flag, const std::string& what, const char* hint) {
    errors.push_back({ErrorCode::kIllegal, what, "", flag, hint});
  };
  for (const auto& value : flags.scenario.values) {
    if (!value->option.given()) continue;
    if (several && value->flag == "--cluster") {
      refuse("--cluster", "is one cluster, and several are given", "all of them in --clusters");
    }
    if (value->flag == "--nodes") {
      refuse("--nodes", "is the size of one cluster, and several sizes are searched",
             "--gpus 64,128, or names like dgx-h100x8 in --clusters");
    }
  }
  for (const std::string& set : flags.scenario.sets) {
    if (several && (set.starts_with("cluster.") || set.starts_with("cluster="))) {
      refuse("--set", fmt::format("{} changes one cluster, and several are given", set),
             "objects in plan.clusters, each with its own keys");
    }
  }
  if (!flags.why_not.empty()) {
    refuse("--why-not", "asks about the layouts of one cluster, and several offers are searched",
           "one --cluster of one size");
  }
  return errors;
}

PlanInput limits_of(const SortedJson& scenario) {
  const auto found = scenario.find("plan");
  if (found == scenario.end()) return {};
  // If something is wrong with it, the scenario's reader reports it.
  const auto document = JsonDocument::from(*found, "");
  return read_plan(document->root());
}

OfferQuestion question_of(const PlanFlags& flags, std::vector<std::int64_t> counts,
                          const SortedJson& scenario, const PlanInput& limits) {
  OfferQuestion out;
  out.counts = std::move(counts);
  out.max_gpus = flags.max_gpus > 0 ? flags.max_gpus : limits.max_gpus;
  if (!flags.clusters.empty()) {
    for (const std::string& name : flags.clusters) {  // "dgx-h100, dgx-h200" has a blank
      const std::size_t begin = std::min(name.find_first_not_of(' '), name.size());
      out.clusters.push_back(name.substr(begin, name.find_last_not_of(' ') + 1 - begin));
    }
    out.source = "--clusters";
  } else {
    for (const SortedJson& cluster : stated_clusters(scenario)) out.clusters.push_back(cluster);
    if (!out.clusters.empty()) out.source = "plan.clusters";
  }
  return out;
}

// "precision" is training.precision: the key of a scenario that ends so.
std::string varied_path(const std::string& key) {
  for (const Key* one : keys()) {
    if (one->path == key || std::string_view(one->path).ends_with("." + key)) return one->path;
  }
  return key.starts_with("moe.") ? "model." + key : key;
}

// A scenario of --vary, and how it differs: "precision=fp8".
struct Variant {
  std::string words;
  SortedJson scenario;
};

constexpr std::size_t kMostVariants = 64;

Result<std::vector<Variant>> variants_of(const std::vector<std::string>& vary,
                                         const SortedJson& scenario, const DataFolders& folders) {
  std::vector<Variant> out = {{"", scenario}};
  for (const std::string& text : vary) {
    const auto split = split_set(text);
    const auto values = split ? split_values(split->second) : std::vector<std::string>();
    if (values.empty()) {
      return failure({ErrorCode::kBadValue, fmt::format("'{}' has no values", text), "", "--vary",
                      "key=value,value, as in precision=bf16,fp8"});
    }
    if (out.size() * values.size() > kMostVariants) {
      return failure({ErrorCode::kBadValue,
                      fmt::format("{} scenarios are too many searches", out.size() * values.size()),
                      "", "--vary", fmt::format("at most {}", kMostVariants)});
    }
    std::vector<Variant> more;
    for (const Variant& before : out) {
      for (const std::string& value : values) {
        Variant one = before;
        one.words += fmt::format("{}{}={}", one.words.empty() ? "" : " ", split->first, value);
        Errors wrong = set_key(varied_path(split->first) + "=" + value, folders, one.scenario);
        if (!wrong.empty()) return failure(std::move(wrong));
        more.push_back(std::move(one));
      }
    }
    out = std::move(more);
  }
  return out;
}

// Every cluster in every size with every scenario of --vary.
Result<std::vector<OfferRequest>> requests_of(const PlanFlags& flags, const OfferQuestion& question,
                                              const SortedJson& scenario,
                                              const DataFolders& folders) {
  const auto variants = variants_of(flags.vary, scenario, folders);
  if (!variants) return failure(variants.error());
  std::vector<OfferRequest> out;
  for (const Variant& variant : *variants) {
    auto requests = offer_requests(variant.scenario, question, folders.topologies);
    if (!requests) return requests;
    for (OfferRequest& request : *requests) {
      if (!variant.words.empty()) {
        request.label += " with " + variant.words;
        request.scenario = json_text(variant.scenario);
      }
      out.push_back(std::move(request));
    }
  }
  return out;
}

std::vector<const Scenario*> scenarios_of(const std::vector<Offer>& offers) {
  std::vector<const Scenario*> out;
  for (const Offer& offer : offers) {
    if (offer.planner) out.push_back(&offer.planner->space().base());
  }
  return out;
}

Written render(const OffersReport& report, const std::string& format) {
  if (format == "json") return offers_json(report);
  if (format == "csv") return offers_csv(report);
  return format == "md" ? offers_markdown(report) : offers_table(report);
}

}  // namespace

Result<std::vector<std::int64_t>> take_gpu_counts(PlanFlags& flags) {
  auto& values = flags.scenario.values;
  const auto gpus = std::find_if(values.begin(), values.end(), [](const auto& value) {
    return value->flag == "--gpus" && value->option.given();
  });
  if (gpus == values.end()) return std::vector<std::int64_t>{};
  const std::string text = (*gpus)->value;
  const bool several = text.find(',') != std::string::npos || text.find("..") != std::string::npos;
  if (!several && flags.clusters.empty()) return std::vector<std::int64_t>{};
  values.erase(gpus);
  return parse_gpu_counts(text);
}

bool asks_for_offers(const std::vector<std::int64_t>& counts, const PlanFlags& flags,
                     const SortedJson& scenario) {
  return !counts.empty() || !flags.clusters.empty() || !flags.vary.empty() ||
         !stated_clusters(scenario).empty();
}

int plan_offers(PlanFlags& flags, std::vector<std::int64_t> counts, const SortedJson& scenario,
                const DataRoot& data, Output& output) {
  const PlanInput limits = limits_of(scenario);
  const OfferQuestion question = question_of(flags, std::move(counts), scenario, limits);
  if (Errors wrong = check_flags(flags, !question.clusters.empty()); !wrong.empty()) {
    return report_errors(wrong);
  }
  const auto requests = requests_of(flags, question, scenario, data.folders);
  if (!requests) return report_errors(requests.error());
  auto offers = make_offers(scenario, flags.scenario.file, *requests, data.folders);
  if (!offers) return report_errors(name_flags(offers.error(), flags.scenario));
  note_readings(flags.output, scenarios_of(*offers));
  const auto prices =
      prices_for(scenarios_of(*offers), data.prices, data.folders.topologies, flags);
  if (!prices) return report_errors(prices.error());
  note_old_prices(flags.output, *prices, scenarios_of(*offers));
  const Objective objective = objective_of(flags, limits);
  Errors errors =
      of_file(flags.scenario.file, check_prices(scenarios_of(*offers), objective, *prices));
  if (!errors.empty()) return report_errors(errors);

  OfferSearch search{objective, search_options(flags, limits), {}};
  search.layouts.top = 1;
  const SignalWatch signals;
  search.layouts.stop = [&] { return signals.count() > 0; };
  PlanProgress progress(flags.output, search.layouts.time_limit_s);
  search.layouts.progress = [&](const SearchProgress& state) { progress.show(state); };
  search.begins = [&](std::size_t index, const Offer& offer) {
    progress.begin(fmt::format("{}/{} {}, {} GPUs", index + 1, offers->size(), offer.request.label,
                               offer.gpus()));
  };
  errors = search_offers(search, *prices, *offers);
  progress.clear();
  if (!errors.empty()) return report_errors(name_flags(errors, flags.scenario));

  const std::size_t all = offers->size();
  const bool stated = flags.top.given();
  const OffersReport report{*offers,
                            rank_offers(*offers, objective),
                            objective,
                            pareto_points(*offers),
                            stated ? static_cast<std::size_t>(flags.search.top) : all,
                            flags.search.front > 0};
  const bool found = !report.ranking.order.empty();
  if (ended_early(report)) note_stopped(found, flags.output);
  if (found) {
    const OfferLayout& best = *(*offers)[report.ranking.order.front()].best;
    errors = flags.require.judge(best.found.prediction, &best.run);
    if (!errors.empty()) return report_errors(errors);
  }
  if (!flags.html.empty()) output.set_file(flags.html, offers_html(report));
  output.set_main(flags.output, render(report, flags.output.format));
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.html);
  return flags.require.code(code_of_search(found, !was_cut_off(report), signals));
}

}  // namespace stepcast::cli
