// SPDX-License-Identifier: Apache-2.0
// The outcome of `diagnose` in every format (docs/diagnose.md).
#pragma once

#include <string>

#include "core/text/written.h"
#include "diagnose/step_diagnosis.h"
#include "report/document_form.h"

namespace stepcast {

struct Prediction;
struct Scenario;

// "all-gather over dp takes 2.1 times its forecast: ..." and what would close the gap.
std::string gap_sentence(const Gap& gap, const Diagnosis& diagnosis);
std::string gap_remedy(const Gap& gap);
// From this share on of the time that the GPU waits for the host, the host is said to wait itself.
inline constexpr double kHostWaits = 0.3;
// "a step takes 1.20 s, 12 % more than its forecast; most of it: ..."
std::string diagnosis_verdict(const Diagnosis& diagnosis);

Written diagnosis_table(const Scenario& scenario, const Diagnosis& diagnosis, Form form);
Written diagnosis_json(const Scenario& scenario, const Prediction& prediction,
                       const Diagnosis& diagnosis);
Written diagnosis_html(const Scenario& scenario, const Prediction& prediction,
                       const Diagnosis& diagnosis);

}  // namespace stepcast
