// SPDX-License-Identifier: Apache-2.0
// A forecast beside its run, for people and for CI (docs/formats/validation.md).
#pragma once

#include <string>
#include <vector>

#include "report/document_form.h"
#include "validate/validation.h"

namespace stepcast {

struct Scenario;
struct TraceSlice;

// Text or Markdown: figures side by side, where the step went, the operations that differ most, the
// verdict.
Written validation_table(const Scenario& scenario, const Validation& validation,
                         Form form = Form::kText);

// JUnit XML: the comparison as one test, and a suite "gate" with a failure per broken limit.
Written validation_junit(const Scenario& scenario, const Validation& validation);

// GitHub workflow commands: an error per broken limit, a warning for a baseline of another machine.
Written validation_github(const Validation& validation);

// A page of its own (docs/reports.md). The forecast was made with PredictOptions::trace; `measured`
// are the slices of validate/measured_slices.h.
Written validation_html(const Scenario& scenario, const Validation& validation,
                        const std::vector<TraceSlice>& measured);

// Who else used the machine while it was measured; nothing where it was quiet or does not tell.
std::string busy_machine_text(const MeasuredRun& run);

// One line: "step time 0.5 s forecast, 0.49 s measured (+2.0 %)".
std::string validation_summary(const Validation& validation);

}  // namespace stepcast
