// SPDX-License-Identifier: Apache-2.0
// Sections of a page about a search.
#pragma once

#include "report/html/page.h"
#include "report/plan_report.h"

namespace stepcast::html {

// Step time against memory of every replayed layout that fits, with the front of both; and the same
// as a table.
Section replayed_section(const PlanReport& report);
Section funnel_section(const PlanReport& report);  // from combinations to places
Section rejected_section(const PlanReport& report);

}  // namespace stepcast::html
