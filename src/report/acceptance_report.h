// SPDX-License-Identifier: Apache-2.0
// Results judged by thresholds, in every format of `check`.
#pragma once

#include <vector>

#include "acceptance/judge_results.h"
#include "core/text/written.h"
#include "report/document_form.h"

namespace stepcast {

Written acceptance_table(const std::vector<Judged>& judged, Form form);
Written acceptance_csv(const std::vector<Judged>& judged);
Written acceptance_json(const std::vector<Judged>& judged);
Written acceptance_junit(const std::vector<Judged>& judged);
Written acceptance_github(const std::vector<Judged>& judged);

}  // namespace stepcast
