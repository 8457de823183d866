// SPDX-License-Identifier: Apache-2.0
#include "predict/prediction.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast::html {

Section path_section(const Prediction& prediction) {
  DataTable table("path-steps", "What the step's end waits for, summed by kind",
                  {{"what"}, {"", false, false}, {"seconds", true}, {"share of the step", true}});
  for (const PathStep& step : prediction.critical_path) {
    const double share = step.time / prediction.step_time;
    table.add_row({step.what,
                   DataCell(bar_line({{{0, share, "mark-1", ""}}, {}, percent_text(share)})),
                   {time_text(step.time), step.time.value()},
                   {percent_text(share), share}});
  }
  return {"path", "Critical path",
          table.html() + note("The path leads from the end of the step back through all that it "
                              "waited for. A pass counts whole here, with the communication and "
                              "the waits for launches inside it; the waterfall takes them apart.")};
}

}  // namespace stepcast::html
