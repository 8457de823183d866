// SPDX-License-Identifier: Apache-2.0

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "report/html/prediction_sections.h"

namespace stepcast::html {

Section scenario_section(const Scenario& scenario) {
  const std::string resolved = json_text(to_json(scenario), 2);
  return {"scenario", "Resolved scenario",
          folded("Every default filled in: read back, it gives the same forecast",
                 element("pre", {}, resolved))};
}

}  // namespace stepcast::html
