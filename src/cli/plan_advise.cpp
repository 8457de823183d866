// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_advise.h"

#include <algorithm>

#include "cli/plan_flags.h"
#include "core/json_tree.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "report/advice_report.h"

namespace stepcast::cli {
namespace {

Written render(const AdviceReport& report, const std::string& format) {
  if (format == "json") return advice_json(report);
  return format == "md" ? advice_markdown(report) : advice_table(report);
}

}  // namespace

void add_advise_flags(CommandLine app, ScenarioFlags& flags, bool& advise) {
  Flag flag = app.add_switch(
      "--advise", advise,
      "find the simplest way that meets the demands, and say why no simpler one does");
  for (const char* other :
       {"--why-not", "--front", "--top", "--clusters", "--objective", "--risk", "--html"}) {
    flag.excludes(app.flag(other));
  }
  add_demand_flags(app, flags);
  app.flag("--min-tokens-per-s").needs(flag);
}

int run_advise(const AdviseRequest& request, const Planner& planner, SearchOptions options,
               PlanProgress& progress, Output& output) {
  if (request.output.format == "csv") {
    return report_errors({{ErrorCode::kBadValue, "an advice is no table of rows", "",
                           "--format csv", "table, json or md"}});
  }
  const Scenario& base = planner.space().base();
  const Demands demands =
      demands_of(base, options.memory_margin, planner.limits().min_tokens_per_s);
  if (Errors errors = check_demands(demands, base, request.prices); !errors.empty()) {
    return report_errors(errors);
  }
  const auto advice = advise({request.scenario, base, request.flags.file, request.data.folders,
                              request.prices, demands, options});
  progress.clear();
  if (!advice) return report_errors(name_flags(advice.error(), request.flags));
  if (advice->interrupted) note(request.output, "stopped: what the rungs climbed so far say");
  output.set_main(request.output, render({base, *advice}, request.output.format));
  if (const int code = output.commit(); code != kOk) return code;
  // Missing a demand of speed or money is an answer. Only when nothing fits is the exit code
  // another.
  const bool any_fits = std::ranges::any_of(advice->rungs, &RungResult::fits);
  return code_of_search(any_fits, !advice->interrupted, request.signals);
}

}  // namespace stepcast::cli
