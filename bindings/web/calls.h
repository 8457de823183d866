// SPDX-License-Identifier: Apache-2.0
// The library's public face (src/stepcast) as a page calls it: a request comes in and an answer
// goes out, both as JSON text.
//
//   {"call": "predict", "arguments": {"scenario": {...}}}  ->  {"json": "...", "page": "..."}
//   a call with mistakes                                   ->  {"errors": [{"message": ...}]}
#pragma once

#include <functional>
#include <string>

#include "stepcast/plan.h"

namespace stepcast::web {

// Hears of a search between its rounds, and says whether it goes on.
using Listener = std::function<bool(const api::PlanProgress&)>;

// Answers one request. No request ends the program; what is wrong with it is the answer.
//
// The calls and their arguments, each of which but the scenarios may be left out:
//   predict   scenario, set, what_if, pictures, page
//             json: as `stepcast predict --format json`; pictures: verdict, figures, waterfall,
//             pipeline and memory as a part of a page
//   compare   scenarios, page                   json: as `stepcast compare --format json`
//   plan      scenario, set, objective, places, time_limit_s, replays, page
//             json: as `stepcast plan --format json`; layouts: the places, each in words with
//             step_time_s and its scenario; proven
//   resolve   scenario, set                     json: the scenario with every default
//   list      topic, filter                     json: as `stepcast show TOPIC --format json`
// `page`: also the page that the program writes for --html. Other calls are the tools of
// `stepcast serve --mcp`, which answer briefly: why_not, check, explain_key.
std::string answer(const std::string& request, const Listener& listener = {});

}  // namespace stepcast::web
