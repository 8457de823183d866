// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "serve/mcp_tools.h"
#include "serve/tool_arguments.h"
#include "stepcast/compare.h"

namespace stepcast::web {
namespace {

constexpr std::int64_t kMostPlaces = 100;
constexpr std::int64_t kMostReplays = 1'000'000;
constexpr std::int64_t kLongestSearch_s = 3600;
constexpr std::size_t kMostCompared = 64;

struct Call {
  const api::Data& data;
  ToolArguments arguments;
  const Listener& listener;
};

// Puts a part of the answer that may fail to be written.
Errors put(const char* key, const Result<std::string>& text, Json& out) {
  if (!text) return text.error();
  out[key] = *text;
  return {};
}

Result<Json> predict(Call& call) {
  const auto scenario = call.arguments.scenario();
  api::PredictOptions options;
  options.what_if = call.arguments.texts("what_if");
  options.timeline = call.arguments.boolean("page", false);
  options.pictures = call.arguments.boolean("pictures", false);
  if (Errors errors = call.arguments.errors(); !errors.empty()) return failure(std::move(errors));
  const auto prediction = api::predict(*scenario, options);
  if (!prediction) return failure(prediction.error());
  Json out = {{"json", prediction->json()}};
  Errors errors;
  if (options.pictures) errors = put("pictures", prediction->pictures(), out);
  if (options.timeline) append(errors, put("page", prediction->html(), out));
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Result<Json> compare(Call& call) {
  const auto scenarios = call.arguments.scenarios(kMostCompared);
  const bool page = call.arguments.boolean("page", false);
  if (Errors errors = call.arguments.errors(); !errors.empty()) return failure(std::move(errors));
  const auto comparison = api::compare(scenarios);
  if (!comparison) return failure(comparison.error());
  Json out = {{"json", comparison->json()}};
  if (page) out["page"] = comparison->html();
  return out;
}

Json layouts_of(const api::Plan& plan) {
  Json out = Json::array();
  for (std::size_t place = 0; place < plan.places(); ++place) {
    out.push_back({{"layout", plan.layout(place)},
                   {"step_time_s", plan.step_time(place).value()},
                   {"scenario", Json::parse(plan.scenario(place).json())}});
  }
  return out;
}

Result<Json> plan(Call& call) {
  const auto scenario = call.arguments.scenario();
  api::PlanOptions options;
  options.objective = call.arguments.text("objective", "");
  options.top = call.arguments.integer("places", options.top, 1, kMostPlaces);
  options.replays = call.arguments.integer("replays", options.replays, 1, kMostReplays);
  options.time_limit =
      Seconds(static_cast<double>(call.arguments.integer("time_limit_s", 0, 0, kLongestSearch_s)));
  const bool page = call.arguments.boolean("page", false);
  if (Errors errors = call.arguments.errors(); !errors.empty()) return failure(std::move(errors));
  bool goes_on = true;
  if (call.listener) {
    options.progress = [&](const api::PlanProgress& now) { goes_on = call.listener(now); };
    options.stop = [&] { return !goes_on; };
  }
  const auto made = api::plan(*scenario, options);
  if (!made) return failure(made.error());
  Json out = {{"json", made->json()}, {"layouts", layouts_of(*made)}, {"proven", made->proven()}};
  if (page) {
    if (Errors errors = put("page", made->html(), out); !errors.empty()) {
      return failure(std::move(errors));
    }
  }
  return out;
}

Result<Json> resolve(Call& call) {
  const auto scenario = call.arguments.scenario();
  if (Errors errors = call.arguments.errors(); !errors.empty()) return failure(std::move(errors));
  auto resolved = scenario->resolved();
  if (!resolved) return failure(resolved.error());
  return Json{{"json", std::move(*resolved)}};
}

Result<Json> list(Call& call) {
  const auto topic = call.arguments.required_text("topic");
  const std::string filter = call.arguments.text("filter", "");
  if (Errors errors = call.arguments.errors(); !errors.empty()) return failure(std::move(errors));
  auto listing = call.data.list(*topic, filter);
  if (!listing) return failure(listing.error());
  return Json{{"json", std::move(*listing)}};
}

struct NamedCall {
  const char* name;
  Result<Json> (*make)(Call& call);
};
constexpr NamedCall kCalls[] = {{"predict", predict},
                                {"compare", compare},
                                {"plan", plan},
                                {"resolve", resolve},
                                {"list", list}};

Result<Json> call_named(const std::string& name, const Json& arguments, const Listener& listener) {
  static const api::Data data = api::Data::shipped();
  std::vector<std::string> names;
  for (const NamedCall& one : kCalls) {
    names.emplace_back(one.name);
    if (name != one.name) continue;
    Call call{data, ToolArguments(data, arguments), listener};
    return one.make(call);
  }
  for (const McpTool& tool : mcp_tools()) {
    if (name == tool.name) return tool.call({data}, arguments);
    if (std::ranges::find(names, tool.name) == names.end()) names.emplace_back(tool.name);
  }
  return failure({ErrorCode::kUnknownKey, fmt::format("'{}' is no call", name.substr(0, 60)), "",
                  "call", one_of(names)});
}

Result<Json> answer_to(const std::string& request, const Listener& listener) {
  const auto parsed = parse_ordered_json(request, "request");
  if (!parsed) return failure(parsed.error());
  if (!parsed->is_object() || !parsed->contains("call") || !(*parsed)["call"].is_string()) {
    return failure({ErrorCode::kMissingKey, "names no call", "", "call",
                    "{\"call\": \"predict\", \"arguments\": {...}}"});
  }
  return call_named((*parsed)["call"].get<std::string>(),
                    parsed->value("arguments", Json::object()), listener);
}

Json rows_of(const Errors& errors) {
  Json out = Json::array();
  for (const Error& error : errors) {
    out.push_back({{"message", error.message},
                   {"file", error.file},
                   {"path", error.path},
                   {"hint", error.hint},
                   {"text", to_string(error)}});
  }
  return out;
}

}  // namespace

std::string answer(const std::string& request, const Listener& listener) {
  const auto made = answer_to(request, listener);
  return json_text(made ? *made : Json{{"errors", rows_of(made.error())}});
}

}  // namespace stepcast::web
