// SPDX-License-Identifier: Apache-2.0
// The whole run on a page: days, money, chances, and where its wall time goes.
#pragma once

#include <string>
#include <vector>

#include "economics/run_forecast.h"
#include "report/html/data_table.h"
#include "report/html/page.h"

namespace stepcast::html {

// Days and dollars with their intervals, and the chances of deadline and budget; none where the
// run has no length.
std::vector<KeyFigure> run_figures(const RunOutlook& run);
// " The run takes 58.7 days and $2.13M; it meets the deadline of 60.0 days (chance 57 %)."
std::string run_sentence(const RunOutlook& run);
// run_cells() (report/run_columns.h) with their exact values, which sort and which the CSV has.
std::vector<DataCell> run_data_cells(const RunOutlook& run, bool length);

Section run_section(const RunOutlook& run);

}  // namespace stepcast::html
