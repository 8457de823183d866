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

// Why its framework's launch files cannot say a layout; nothing where they can, or where it has
// none.
std::optional<Errors> export_errors(const Planner& planner, const SortedJson& stated,
                                    const DataFolders& folders, const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  const LaunchFormat* format = launch_format_of(scenario.training.framework);
  if (format == nullptr) return std::nullopt;
  const auto exported = export_scenario(scenario, json_text(with_layout(stated, planner, choice)),
                                        format->name, ExportOptions{}, folders);
  if (exported) return std::nullopt;
  return exported.error();
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

Result<std::string> prefer_exportable(const Planner& planner, const SortedJson& stated,
                                      const DataFolders& folders, SearchResult& result) {
  if (result.found.empty()) return "";
  const auto first = export_errors(planner, stated, folders, result.found.front().choice);
  if (!first) return "";
  if (Errors refused = refused_by_machine(*first); !refused.empty()) return failure(refused);
  const Seconds most = result.found.front().prediction.step_time * (1 + kNearTie);
  for (std::size_t i = 1; i < std::min(kMostTried, result.found.size()); ++i) {
    if (result.found[i].prediction.step_time > most) continue;
    const auto other = export_errors(planner, stated, folders, result.found[i].choice);
    if (other) {
      if (Errors refused = refused_by_machine(*other); !refused.empty()) return failure(refused);
      continue;
    }
    put_first(i, result);
    return "";
  }
  Error error = first->front();
  error.file.clear();
  return fmt::format("export cannot write the first place: {}", to_string(error));
}

}  // namespace stepcast::cli
