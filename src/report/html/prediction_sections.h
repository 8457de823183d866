// SPDX-License-Identifier: Apache-2.0
// Sections of a page about one forecast.
#pragma once

#include "report/html/page.h"
#include "report/recorded_runs.h"

namespace stepcast {

struct Prediction;
struct Scenario;
}  // namespace stepcast

namespace stepcast::html {

Section time_section(const Prediction& prediction);      // the waterfall, and where the time goes
Section pipeline_section(const Prediction& prediction);  // needs slices
Section memory_section(const Prediction& prediction);    // needs samples for its timelines
Section link_section(const Scenario& scenario, const Prediction& prediction);  // needs link_busy
Section certainty_section(const Prediction& prediction);  // interval and provenance
Section path_section(const Prediction& prediction);
Section scenario_section(const Scenario& scenario);
Section recorded_section(const RecordedRuns& runs);

// Titles the section for a page about many layouts, where it describes the first place.
Section of_first_place(Section section);

// Lists the figures that stand beside the verdict.
std::vector<KeyFigure> prediction_figures(const Scenario& scenario, const Prediction& prediction);
// "It fits, with 45.2 of 79.15 GiB on the fullest GPU"
std::string memory_words(const Prediction& prediction);

}  // namespace stepcast::html
