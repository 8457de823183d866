// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/json_tree.h"
#include "core/machine_errors.h"
#include "core/text/escape.h"
#include "layout/scenario.h"
#include "plan/planner.h"
#include "plan/ranking.h"
#include "plan/search_result.h"
#include "plan/space.h"
#include "recipes/export.h"
#include "recipes/launch_format.h"
#include "report/plan_entry.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kMostTried = 20;

struct Launched {
  std::string target;  // of `export --to`; empty: the framework has no launch files
  Errors errors;       // why its launch files cannot say the layout
};

Launched launched(const Planner& planner, const SortedJson& stated, const DataFolders& folders,
                  const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  const std::string text = json_text(with_layout(stated, planner, choice));
  Launched out;
  for (const std::string& target : launch_targets(scenario)) {
    const auto exported = export_scenario(scenario, text, target, ExportOptions{}, folders);
    if (exported) return {target, {}};
    if (out.target.empty()) out = {target, exported.error()};
  }
  return out;
}

void put_first(std::size_t index, SearchResult& result) {
  const auto begin = result.found.begin();
  std::rotate(begin, begin + static_cast<std::ptrdiff_t>(index),
              begin + static_cast<std::ptrdiff_t>(index) + 1);
  for (std::size_t& of_front : result.front) {
    if (of_front == index) {
      of_front = 0;
    } else if (of_front < index) {
      ++of_front;
    }
  }
}

}  // namespace

Result<LaunchNote> prefer_exportable(const Planner& planner, const SortedJson& stated,
                                     const DataFolders& folders, SearchResult& result) {
  if (result.found.empty()) return LaunchNote{};
  const Launched first = launched(planner, stated, folders, result.found.front().choice);
  if (first.errors.empty()) return LaunchNote{first.target, ""};
  if (Errors refused = refused_by_machine(first.errors); !refused.empty()) return failure(refused);
  const Seconds most = result.found.front().prediction.step_time * (1 + kNearTie);
  for (std::size_t i = 1; i < std::min(kMostTried, result.found.size()); ++i) {
    if (result.found[i].prediction.step_time > most) continue;
    const Launched other = launched(planner, stated, folders, result.found[i].choice);
    if (!other.errors.empty()) {
      if (Errors refused = refused_by_machine(other.errors); !refused.empty()) {
        return failure(refused);
      }
      continue;
    }
    put_first(i, result);
    return LaunchNote{other.target, ""};
  }
  Error error = first.errors.front();
  error.file.clear();
  return LaunchNote{"", fmt::format("export cannot write the first place: {}", to_string(error))};
}

}  // namespace stepcast::cli
