// SPDX-License-Identifier: Apache-2.0
// Sections of a page about one forecast.
#pragma once

#include "predict/prediction.h"
#include "report/html/page.h"

namespace stepcast::html {

Section time_section(const Prediction& prediction);      // the waterfall, and where the time goes
Section pipeline_section(const Prediction& prediction);  // needs slices
Section memory_section(const Prediction& prediction);    // needs samples for its timelines
Section link_section(const Scenario& scenario, const Prediction& prediction);  // needs link_busy
Section certainty_section(const Prediction& prediction);  // interval and provenance
Section path_section(const Prediction& prediction);
Section scenario_section(const Scenario& scenario);

}  // namespace stepcast::html
