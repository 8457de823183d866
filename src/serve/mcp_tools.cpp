// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp_tools.h"

#include <fmt/format.h>

#include "core/json_tree.h"
#include "serve/short_answers.h"
#include "serve/tool_arguments.h"
#include "serve/tool_schemas.h"
#include "stepcast/plan.h"
#include "stepcast/suites.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostCompared = 16;
constexpr std::int64_t kMostPlaces = 10;
constexpr std::int64_t kMostErrors = 50;
// This part of a call's time is the search's, which can then still say what it has found.
constexpr double kSearchShare = 0.9;

Result<Json> call_predict(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  const auto scenario = arguments.scenario();
  api::PredictOptions options;
  options.what_if = arguments.texts("what_if");
  if (Errors errors = arguments.errors(); !errors.empty()) return failure(std::move(errors));
  const auto prediction = api::predict(*scenario, options);
  if (!prediction) return failure(prediction.error());
  return short_prediction(*prediction);
}

Result<Json> search(const ToolContext& context, ToolArguments& arguments,
                    api::PlanOptions options) {
  const auto scenario = arguments.scenario();
  const auto places = arguments.integer("places", 3, 1, kMostPlaces);
  if (Errors errors = arguments.errors(); !errors.empty()) return failure(std::move(errors));
  options.top = places;
  options.time_limit = kSearchShare * context.time_limit;
  options.threads = context.threads;
  const auto plan = api::plan(*scenario, options);
  if (!plan) return failure(plan.error());
  return short_plan(*plan, static_cast<std::size_t>(places));
}

Result<Json> call_plan(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  api::PlanOptions options;
  options.objective = arguments.text("objective", "");
  return search(context, arguments, std::move(options));
}

Result<Json> call_why_not(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  api::PlanOptions options;
  options.why_not = {arguments.keys("layout")};
  if (options.why_not.front().empty() && arguments.errors().empty()) {
    return failure({ErrorCode::kMissingKey, "is required", "", "layout",
                    "the keys of a layout to ask about, as in {\"tp\": 4, \"pp\": 8}"});
  }
  return search(context, arguments, std::move(options));
}

Result<Json> call_compare(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  const auto scenarios = arguments.scenarios(kMostCompared);
  if (Errors errors = arguments.errors(); !errors.empty()) return failure(std::move(errors));
  const auto comparison = api::compare(scenarios, context.threads);
  if (!comparison) return failure(comparison.error());
  return short_comparison(*comparison);
}

Result<Json> call_check(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  const auto name = arguments.required_text("suite");
  const auto tolerances = arguments.texts("tolerances");
  const auto cases = arguments.integer("largest_errors", 5, 0, kMostErrors);
  if (Errors errors = arguments.errors(); !errors.empty()) return failure(std::move(errors));
  const auto suite = api::Suite::load(context.data, *name);
  if (!suite) return failure(suite.error());
  const auto outcome = api::check({*suite}, tolerances, context.threads);
  if (!outcome) return failure(outcome.error());
  return short_check(*outcome, static_cast<std::size_t>(cases));
}

Result<Json> call_explain_key(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  const auto key = arguments.required_text("key");
  if (Errors errors = arguments.errors(); !errors.empty()) return failure(std::move(errors));
  const auto listing = context.data.list("keys");
  if (!listing) return failure(listing.error());
  std::vector<std::string> names;
  for (const Json& one : Json::parse(*listing)) {
    names.push_back(one["key"].get<std::string>());
    if (names.back() == *key || names.back().ends_with("." + *key)) return one;
  }
  const std::string near = did_you_mean(*key, names);
  return failure({ErrorCode::kNotFound, fmt::format("'{}' is no key", key->substr(0, 60)), "",
                  "key", near.empty() ? "list keys names all of them" : near});
}

Result<Json> call_list(const ToolContext& context, const Json& given) {
  ToolArguments arguments(context.data, given);
  const auto topic = arguments.required_text("topic");
  const std::string filter = arguments.text("filter", "");
  if (Errors errors = arguments.errors(); !errors.empty()) return failure(std::move(errors));
  if (*topic == "suites") {
    const auto names = api::shipped_suites(context.data);
    if (!names) return failure(names.error());
    return Json{{"names", *names}};
  }
  const auto listing = context.data.list(*topic, filter);
  if (!listing) return failure(listing.error());
  return short_list(*listing);
}

Json what_if_schema() {
  return list_schema(text_schema("a resource and its change"),
                     "other speeds of the cluster, as in [\"nic=+20%\", \"memory=-10%\"]");
}

Json places_schema() {
  return integer_schema("how many of the best layouts are told", 1, kMostPlaces, 3);
}

McpTool predict_tool() {
  return {
      "predict", "Forecast a training step",
      "Forecasts one training step of a scenario: step time with its interval, tokens/s, MFU, "
      "bubble, memory per GPU and whether it fits, where the time goes, what the forecast rests "
      "on, and the nearest recorded runs with their errors.",
      [](const ToolContext& context) {
        return object_schema({{"scenario", scenario_schema(context.data)},
                              {"set", set_schema()},
                              {"what_if", what_if_schema()}},
                             1);
      },
      call_predict};
}

McpTool plan_tool() {
  return {"plan", "Search the best layout",
          "Searches the layouts that a scenario leaves open, and tells the best ones with their "
          "forecasts, and whether they are proven to be the best.",
          [](const ToolContext&) {
            return object_schema(
                {{"scenario", brief_scenario_schema()},
                 {"set", set_schema()},
                 {"places", places_schema()},
                 {"objective", text_schema("step_time, cost or goodput; step_time unless stated")}},
                1);
          },
          call_plan};
}

McpTool compare_tool() {
  return {
      "compare", "Compare scenarios",
      "Forecasts several scenarios side by side, and says in which keys they differ and where the "
      "difference of their times comes from.",
      [](const ToolContext&) {
        const Json one =
            object_schema({{"name", text_schema("what the scenario is called in the answer")},
                           {"scenario", brief_scenario_schema()}},
                          2);
        return object_schema(
            {{"scenarios", list_schema(one, fmt::format("2 to {} scenarios of different names",
                                                        kMostCompared))}},
            1);
      },
      call_compare};
}

McpTool why_not_tool() {
  return {
      "why_not", "Ask why a layout is not the best",
      "Searches the best layout of a scenario, and says why the layouts that you ask about are "
      "not "
      "the first place: the rule that refuses them, the memory that they lack, or the time that "
      "they lose.",
      [](const ToolContext&) {
        return object_schema(
            {{"scenario", brief_scenario_schema()},
             {"layout", Json{{"type", "object"},
                             {"description", "the keys to ask about: {\"tp\": 4, \"pp\": 8}"}}},
             {"set", set_schema()},
             {"places", places_schema()}},
            2);
      },
      call_why_not};
}

McpTool check_tool() {
  return {
      "check", "Hold forecasts against recorded runs",
      "Forecasts the recorded runs of a suite and tells how far the forecasts are off: the errors "
      "that a forecast of such a run may have.",
      [](const ToolContext&) {
        return object_schema(
            {{"suite", text_schema("a shipped name (list suites), or a file that may be read")},
             {"tolerances", list_schema(text_schema("a limit"),
                                        "limits, as in [\"step_time.mean_abs_error=0.1\"]")},
             {"largest_errors",
              integer_schema("how many of the largest errors are told", 0, kMostErrors, 5)}},
            1);
      },
      call_check};
}

McpTool explain_key_tool() {
  return {"explain_key", "Explain a key of a scenario",
          "Says what a key of training or layout means, what it accepts and what its default is.",
          [](const ToolContext&) {
            return object_schema({{"key", text_schema("its path: \"layout.tp\"")}}, 1);
          },
          call_explain_key};
}

McpTool list_tool() {
  return {
      "list", "List what there is",
      "Lists shipped models, clusters, gpus, schedules, keys, figures, documents or suites. A list "
      "of "
      "more than a few tells names alone; a filter shows single entries whole.",
      [](const ToolContext&) {
        return object_schema(
            {{"topic",
              text_schema("models, clusters, gpus, schedules, keys, figures, documents or suites")},
             {"filter", text_schema("only names that contain this")}},
            1);
      },
      call_list};
}

}  // namespace

const std::vector<McpTool>& mcp_tools() {
  static const std::vector<McpTool> tools{predict_tool(), plan_tool(),  compare_tool(),
                                          why_not_tool(), check_tool(), explain_key_tool(),
                                          list_tool()};
  return tools;
}

}  // namespace stepcast
