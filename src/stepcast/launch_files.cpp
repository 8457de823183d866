// SPDX-License-Identifier: Apache-2.0
#include "stepcast/launch_files.h"

#include <algorithm>

#include "core/json.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "predict/timed_orders.h"
#include "recipes/export.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/read_scenario.h"

namespace stepcast::api {

std::vector<std::string> launch_targets() { return export_target_names(); }

Result<LaunchFiles> launch_files(const Scenario& scenario, const std::string& target) {
  const auto names = launch_targets();
  if (std::ranges::find(names, target) == names.end()) {
    return failure(
        {ErrorCode::kNotFound, "'" + target + "' is no target", "", "target", one_of(names)});
  }
  const DataFolders& folders = scenario.data().root().folders;
  auto legal = read_legal_scenario(*document_of(scenario), folders);
  if (!legal) return failure(legal.error());
  if (target == kScheduleTarget) {
    if (Errors errors = keep_timed_orders(folders, *legal); !errors.empty()) {
      return failure(std::move(errors));
    }
  }
  const auto exported = export_scenario(*legal, scenario.json(), target, ExportOptions{}, folders);
  if (!exported) return failure(exported.error());
  LaunchFiles out;
  for (const auto& file : exported->files)
    out.files.push_back({file.name, file.text, file.executable});
  for (const Setting& remark : exported->remarks) {
    out.remarks.push_back(remark.path + "=" + remark.value);
  }
  return out;
}

}  // namespace stepcast::api
