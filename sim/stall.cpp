// SPDX-License-Identifier: Apache-2.0
#include "sim/stall.h"

#include <fmt/format.h>

#include <utility>

namespace stepcast::sim {

std::string Describer::operator()(TaskId task) const {
  return describe != nullptr ? describe(task, context) : fmt::format("task {}", task.value);
}

namespace {

Error deadlock(std::string message, std::string hint = "") {
  Error error;
  error.code = ErrorCode::kIllegal;
  error.message = "deadlock: " + std::move(message);
  error.hint = std::move(hint);
  return error;
}

}  // namespace

Error cycle_error(std::span<const TaskId> cycle, const Describer& words) {
  if (cycle.size() == 1) return deadlock(words(cycle.front()) + " waits for itself");
  std::string text = words(cycle.front());
  for (std::size_t i = cycle.size(); i-- > 0;) {
    text += (i + 1 == cycle.size() ? " waits for " : ", which waits for ") + words(cycle[i]);
  }
  return deadlock(text, "all members of a communicator must issue its operations in one order");
}

Error starvation_error(const Starvation& starvation, const Describer& words) {
  std::string text = fmt::format("{} needs resource {}, which ", words(starvation.task),
                                 starvation.resource.value);
  const std::vector<TaskId>& holders = starvation.holders;
  if (holders.empty()) return deadlock(text + "has no capacity");
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (i > 0) text += i + 1 == holders.size() ? " and " : ", ";
    text += words(holders[i]);
  }
  text += holders.size() == 1 ? " holds wholly" : " hold wholly";
  return deadlock(text + " and cannot give back");
}

}  // namespace stepcast::sim
