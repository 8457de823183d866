// SPDX-License-Identifier: Apache-2.0
// `plan --advise`: the simplest way to parallelise that meets the demands.
#pragma once

#include "cli/output.h"
#include "cli/plan_progress.h"
#include "core/json_fwd.h"
#include "economics/prices.h"
#include "launch/signal_watch.h"

namespace stepcast {

class Planner;
struct SearchOptions;
}  // namespace stepcast

namespace stepcast::cli {

struct ScenarioFlags;

// --advise and --min-tokens-per-s; call after all flags that do not go with it.
void add_advise_flags(CommandLine app, ScenarioFlags& flags, bool& advise);

struct AdviseRequest {
  const SortedJson& scenario;  // with all flags laid over it
  const ScenarioFlags& flags;
  const OutputOptions& output;
  const DataRoot& data;
  const PriceList& prices;
  const SignalWatch& signals;
};

// `planner` is of the request's scenario. Returns the exit code.
int run_advise(const AdviseRequest& request, const Planner& planner, SearchOptions options,
               PlanProgress& progress, Output& output);

}  // namespace stepcast::cli
