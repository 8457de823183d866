// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/key_values.h"
#include "cli/plan_advise.h"
#include "cluster/cluster.h"
#include "cluster/named_cluster.h"
#include "core/json_tree.h"
#include "core/unit_text.h"
#include "layout/override.h"
#include "layout/plan_input.h"
#include "layout/scenario.h"
#include "plan/advise/demands.h"

namespace stepcast::cli {
namespace {

Error two_values(const std::string& path, const std::string& one, const std::string& other) {
  return {ErrorCode::kIllegal, fmt::format("{} has two values, {} and {}", path, one, other), "",
          "--fix", "one of them"};
}

}  // namespace

std::string layout_path(const std::string& key) {
  if (key.starts_with("layout.")) return key;
  return key == "vpp" ? "layout.virtual_stages" : "layout." + key;
}

std::map<std::string, std::string> stated_by_flags(const ScenarioFlags& flags) {
  std::map<std::string, std::string> out;
  for (const auto& value : flags.values) {
    if (value->option.given()) out.emplace(value->path, value->value);
  }
  for (const std::string& text : flags.sets) {
    if (const auto split = split_set(text)) out.insert_or_assign(split->first, split->second);
  }
  return out;
}

Errors lay_over(const std::string& text, const char* flag, SortedJson& scenario) {
  Errors errors;
  for (const std::string& one : split_values(text)) {
    const auto split = split_set(one);
    if (!split) {
      errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' has no value", one), "", flag,
                        "keys and values, as in tp=4,pp=8"});
      continue;
    }
    for (Error& error : apply_override(scenario, layout_path(split->first), split->second)) {
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

Errors lay_fixed_over(PlanFlags& flags, SortedJson& scenario) {
  Errors errors;
  std::map<std::string, std::string> stated = stated_by_flags(flags.scenario);
  for (const std::string& text : flags.fixed) {
    for (const std::string& one : split_values(text)) {
      const auto split = split_set(one);
      if (!split) continue;  // lay_over says so
      const std::string path = layout_path(split->first);
      flags.scenario.fixed.push_back(path + "=" + split->second);
      const auto [known, fresh] = stated.emplace(path, split->second);
      if (!fresh && known->second != split->second) {
        errors.push_back(two_values(path, known->second, split->second));
      }
    }
    for (Error& error : lay_over(text, "--fix", scenario)) errors.push_back(std::move(error));
  }
  return errors;
}

void note_stopped(bool found, const OutputOptions& output) {
  note(output,
       found ? "stopped: the best found so far" : "stopped: nothing that fits was found so far");
}

int code_of_search(bool found, bool looked_at_all, const SignalWatch& signals) {
  if (found) return kOk;
  if (looked_at_all) return kDoesNotFit;
  return signals.count() > 0 ? 128 + signals.signal() : static_cast<int>(kOk);
}

SearchOptions search_options(const PlanFlags& flags, const PlanInput& limits) {
  SearchOptions out = flags.search;
  out.threads = threads_of(flags.threads);
  out.memory_margin =
      flags.memory_margin >= 0 ? flags.memory_margin : limits.memory_margin.value_or(kMemoryMargin);
  out.risk = flags.risk > 0 ? flags.risk : limits.risk.value_or(out.risk);
  return out;
}

Objective objective_of(const PlanFlags& flags, const PlanInput& limits) {
  const std::string stated = limits.objective.value_or(name_of(Objective::kStepTime));
  return stepcast::objective_of(flags.objective.empty() ? stated : flags.objective);
}

Errors take_prices(PlanFlags& flags) {
  auto& values = flags.scenario.values;
  const auto price = std::find_if(values.begin(), values.end(), [](const auto& value) {
    return value->flag == "--price" && value->option.given() &&
           value->value.find('=') != std::string::npos;
  });
  if (price == values.end()) return {};
  Errors errors;
  for (const std::string& one : split_values((*price)->value)) {
    const std::size_t equals = one.find('=');
    const auto dollars = parse_dollars(equals == std::string::npos ? one : one.substr(equals + 1));
    if (equals == 0 || equals == std::string::npos || !dollars || *dollars < 0) {
      errors.push_back({ErrorCode::kBadValue,
                        fmt::format("'{}' is not the price of a cluster", one), "", "--price",
                        "2.5, or dgx-h100=2.5,dgx-a100-80g=1.4"});
      continue;
    }
    const std::string name = one.substr(0, equals);
    if (std::ranges::find(flags.prices, name, &Price::cluster) != flags.prices.end()) {
      errors.push_back(
          {ErrorCode::kIllegal, name + " has two prices", "", "--price", "one of them"});
      continue;
    }
    flags.prices.push_back(
        {.cluster = name, .dollars_per_gpu_hour = *dollars, .provider = "--price"});
  }
  values.erase(price);
  return errors;
}

Result<PriceList> prices_for(const std::vector<const Scenario*>& scenarios,
                             const PriceFiles& price_files, const std::string& topologies,
                             const PlanFlags& flags) {
  auto prices = load_prices(price_files);
  if (!prices) return prices;
  std::vector<std::string> names;
  for (const Scenario* scenario : scenarios) {
    if (!flags.prices.empty() && scenario->run && scenario->run->price_per_gpu_hour) {
      return failure({ErrorCode::kIllegal,
                      "is stated for every cluster, and --price for single ones",
                      flags.scenario.file, "run.price_per_gpu_hour", "one of the two"});
    }
    const std::string& name = scenario->cluster.spec.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::set<std::string> taken;
  for (Price price : flags.prices) {
    // Every name that --clusters takes: that of a GPU stands for a cluster of it.
    const SortedJson named = named_cluster(price.cluster, topologies);
    const std::string base = named.contains("base") && named["base"].is_string()
                                 ? named["base"].get<std::string>()
                                 : price.cluster;
    if (const auto found = find_cluster_name(base, topologies)) price.cluster = found->cluster;
    if (std::find(names.begin(), names.end(), price.cluster) == names.end()) {
      const std::string near = did_you_mean(price.cluster, names);
      return failure({ErrorCode::kNotFound,
                      fmt::format("'{}' is not one of the clusters", price.cluster), "", "--price",
                      near.empty() ? one_of(names) : near});
    }
    if (!taken.insert(price.cluster).second) {
      return failure({ErrorCode::kIllegal, price.cluster + " has two prices, under two names", "",
                      "--price", "one of them"});
    }
    std::erase_if(*prices, [&](const Price& other) { return other.cluster == price.cluster; });
    prices->push_back(price);
  }
  return prices;
}

Errors of_file(const std::string& file, Errors errors) {
  for (Error& error : errors) error.file = file;
  return errors;
}

namespace {

// How long the search goes on, and what of it is shown.
void add_search_flags(CommandLine app, PlanFlags& flags) {
  flags.top = app.add("--top", flags.search.top, "show this many places")
                  .type_name("N")
                  .within(std::int64_t{1}, std::int64_t{1000})
                  .shows_default();
  app.add_switch("--prove", flags.search.prove,
                 "search on until all places are certain, and each offer to its end");
  app.add("--replays", flags.search.replays, "replay at most N layouts, unless --prove is given")
      .type_name("N")
      .within(std::int64_t{1}, std::int64_t{1} << 40)
      .shows_default();
  app.add("--time-limit", flags.search.time_limit_s,
          "stop after S seconds and print the best so far")
      .type_name("S")
      .within(0.0, 1e9);
  app.add("--front", flags.search.front, "add at most N points of the front of time and memory")
      .type_name("N")
      .within(0, 100)
      .shows_default();
}

}  // namespace

void add_plan_flags(CommandLine app, PlanFlags& flags) {
  add_scenario_flags(app, flags.scenario);
  add_run_flags(app, flags.scenario);
  add_prices_flag(app, flags.prices_file);
  app.flag("--gpus")
      .help("GPUs of the cluster; 64,128 or 64..4096: one search for each number")
      .type_name("N,...");
  app.flag("--price")
      .help("price of a GPU-hour instead of the listed one, for all clusters or for single ones")
      .type_name("DOLLARS|NAME=DOLLARS,...");
  add_output_flags(app, flags.output, {"table", "json", "csv", "md"});
  add_html_flag(app, flags.html);
  flags.require.add_to(app);
  app.add("--clusters", flags.clusters,
          "search the best layout on each of these, with --gpus GPUs each")
      .type_name("NAME,...")
      .splits_at(',')
      .one_word();
  app.add("--objective", flags.objective, "rank places by this").one_of(objective_names());
  app.add("--fix", flags.fixed, "do not search these layout keys, for example tp=8,zero=1")
      .type_name("KEY=VALUE")
      .one_word();
  app.add("--open", flags.open,
          "search these layout keys although the file states them, for example tp,pp or all")
      .type_name("KEY,...")
      .splits_at(',')
      .one_word();
  app.add("--vary", flags.vary,
          "search once for each of these values of a key that a search leaves alone, for example "
          "precision=bf16,fp8")
      .type_name("KEY=VALUE,...")
      .one_word();
  app.add("--why-not", flags.why_not,
          "say why these are not the first place, for example tp=4,pp=8")
      .type_name("KEY=VALUE")
      .one_word();
  app.add("--max-gpus", flags.max_gpus,
          "use exactly N GPUs of a larger cluster; leave out numbers of --gpus above N")
      .type_name("N")
      .within(std::int64_t{1}, kMaxGpus);
  app.add("--memory-margin", flags.memory_margin,
          "leave this fraction of memory free; 0.05 unless stated")
      .type_name("FRACTION")
      .within(0.0, 1.0);
  app.add("--risk", flags.risk,
          "rank places by the step time that is not exceeded with this probability; 0.5 "
          "unless stated")
      .type_name("QUANTILE")
      .within(kLeastRisk, kMostRisk);
  add_search_flags(app, flags);
  add_advise_flags(app, flags.scenario, flags.advise);
  add_threads_flag(app, flags.threads);
  add_data_flag(app, flags.data);
}

}  // namespace stepcast::cli
