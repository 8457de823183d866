// SPDX-License-Identifier: Apache-2.0
// Reads schedules in GOAL, the graph language of LogGOPSim and ATLAHS, in its text form
// (docs/formats/graphs.md): operations of each rank, and what each requires. A file is read line
// by line.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "graphs/execution_graph.h"

namespace stepcast {

// LogGOPSim's S: longer messages wait for their receive.
inline constexpr double kGoalEagerBytes = 65535;

// Whether a file begins as a schedule in GOAL does: with `num_ranks` or a comment.
bool looks_like_goal(std::string_view begin);

// Errors name file and line: no such rank or label, a receive from any rank, a rank that stands
// twice or not at all, a file that is cut.
Result<ExecutionGraph> read_goal(const std::string& file);
Result<ExecutionGraph> goal_of(std::string_view text, const std::string& file);

}  // namespace stepcast
