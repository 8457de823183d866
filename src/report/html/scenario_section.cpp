// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/html/prediction_sections.h"

namespace stepcast::html {

Section scenario_section(const Scenario& scenario) {
  const std::string resolved =
      to_json(scenario).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  return {"scenario", "Resolved scenario",
          folded("Every default filled in: read back, it gives the same forecast",
                 element("pre", {}, resolved))};
}

}  // namespace stepcast::html
