// SPDX-License-Identifier: Apache-2.0
// Holds what `plan` is asked: flags, and what they say together with the scenario.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/require.h"
#include "cli/scenario_flags.h"
#include "cli/session.h"
#include "core/json_fwd.h"
#include "launch/signal_watch.h"
#include "plan/offers/objective.h"
#include "plan/search.h"

namespace stepcast {

struct PlanInput;
struct Scenario;
}  // namespace stepcast

namespace stepcast::cli {

struct PlanFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::string html;
  std::vector<std::string> fixed, open, why_not;
  std::vector<std::string> clusters, vary;
  std::vector<Price> prices;  // of single clusters: --price NAME=DOLLARS
  std::string prices_file;    // --prices
  std::string objective;      // empty: the scenario's
  std::int64_t max_gpus = 0;
  double memory_margin = -1;  // negative: the scenario's
  double risk = 0;            // 0: the scenario's
  SearchOptions search;
  Flag top;
  int threads = 0;
  bool advise = false;
  Require require;
};

void add_plan_flags(CommandLine app, PlanFlags& flags);

// "tp" is "layout.tp"; whole paths stay.
std::string layout_path(const std::string& key);

// The values of paths that flags state: --tp 8 and --set layout.tp=8 fix a key alike.
std::map<std::string, std::string> stated_by_flags(const ScenarioFlags& flags);

// "tp=4,pp=8" laid over a scenario.
Errors lay_over(const std::string& text, const char* flag, SortedJson& scenario);

// All --fix laid over a scenario. Errors: what cannot be read, and a key with two values.
Errors lay_fixed_over(PlanFlags& flags, SortedJson& scenario);

// Says that a search has ended before it was done.
void note_stopped(bool found, const OutputOptions& output);

// The exit code of a search that has printed what it found. Only one that has looked at everything
// knows that nothing fits.
int code_of_search(bool found, bool looked_at_all, const SignalWatch& signals);

// The flags' where they are given, else the scenario's.
SearchOptions search_options(const PlanFlags& flags, const PlanInput& limits);
Objective objective_of(const PlanFlags& flags, const PlanInput& limits);

// Takes --price out of the flags when it names clusters.
Errors take_prices(PlanFlags& flags);

// The published prices with the flags' laid over. Errors: also a price of a cluster that no
// scenario has.
Result<PriceList> prices_for(const std::vector<const Scenario*>& scenarios,
                             const PriceFiles& price_files, const std::string& topologies,
                             const PlanFlags& flags);

// Makes errors name the file.
Errors of_file(const std::string& file, Errors errors);

}  // namespace stepcast::cli
