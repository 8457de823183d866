// SPDX-License-Identifier: Apache-2.0
#include "report/html/compare_sections.h"
#include "report/html/data_table.h"

namespace stepcast::html {

Section files_section(const CompareReport& report) {
  constexpr const char* kId = "files-section";
  constexpr const char* kTitle = "What differs between the files";
  if (report.differences.empty()) return {kId, kTitle, paragraph(kNoDifference)};
  std::vector<DataColumn> columns{{"key"}};
  for (const std::string& file : compared_files(report)) columns.push_back({file});
  DataTable table("files", "Keys that are not equal, with every default filled in", columns);
  for (const KeyDifference& one : report.differences) {
    std::vector<DataCell> cells{one.key};
    cells.insert(cells.end(), one.values.begin(), one.values.end());
    table.add_row(cells);
  }
  return {kId, kTitle, table.html()};
}

}  // namespace stepcast::html
