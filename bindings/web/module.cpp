// SPDX-License-Identifier: Apache-2.0
// The module's only way in. JavaScript calls stepcast_answer(request), and reads the answer before
// it calls again.
#include <emscripten.h>

#include <exception>
#include <string>

#include "calls.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

// Module.tell, where there is one, hears of a search; false ends it.
EM_JS(int, stepcast_tell, (const char* progress), {
  const tell = Module["tell"];
  return tell && Object.is(tell(UTF8ToString(progress)), false) ? 0 : 1;
});

namespace stepcast::web {
namespace {

bool tell(const api::PlanProgress& now) {
  const Json progress = {{"elapsed_s", now.elapsed.value()},
                         {"bounded", now.bounded},
                         {"replayed", now.replayed},
                         {"best_step_time_s", now.best.value()},
                         {"bound_step_time_s", now.bound.value()},
                         {"best_scenario", now.best_scenario}};
  return stepcast_tell(json_text(progress).c_str()) != 0;
}

}  // namespace
}  // namespace stepcast::web

extern "C" EMSCRIPTEN_KEEPALIVE const char* stepcast_answer(const char* request) {
  static std::string answer;
  try {
    answer = stepcast::web::answer(request, stepcast::web::tell);
  } catch (const std::exception& error) {
    const stepcast::Json row = {{"message", error.what()}, {"text", error.what()}};
    answer = json_text(stepcast::Json{{"errors", stepcast::Json::array({row})}});
  }
  return answer.c_str();
}

extern "C" EMSCRIPTEN_KEEPALIVE const char* stepcast_version() { return STEPCAST_VERSION; }
