// SPDX-License-Identifier: Apache-2.0
// Rank files of a run that never was: every rank plays its role on a timetable of round numbers.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "program/program.h"
#include "program/rank_stream.h"
#include "scenario_from.h"
#include "validate/rank_file.h"

namespace stepcast::testing {

// Says when a rank, from `now` on, does an instruction and when it is done with it.
using Play = std::function<MeasuredSpan(RankId, const Role&, std::size_t instruction, double now)>;

inline nlohmann::json rank_json(const RankGrid& grid, RankId rank) {
  const GridPoint point = grid.point(rank);
  return {{"rank", rank.value},
          {"host", "here"},
          {"stage", point.pp},
          {"tp", point.tp},
          {"dp", point.dp},
          {"steps", nlohmann::json::array()},
          {"operations", nlohmann::json::array()},
          {"peak_memory_bytes", 1000 + rank.value},
          {"memory_bytes", {{"parameters", 1000 + rank.value}}}};
}

// `begins` of each step; instructions follow each other as `play` says.
inline nlohmann::json played(const RankGrid& grid, const Program& program, RankId rank,
                             const std::vector<double>& begins, const Play& play) {
  nlohmann::json out = rank_json(grid, rank);
  const Role& role = program.roles[static_cast<std::size_t>(grid.point(rank).pp)];
  for (const double begin : begins) {
    nlohmann::json spans = nlohmann::json::array();
    double now = begin;
    for (std::size_t i = 0; i < role.instructions.size(); ++i) {
      const MeasuredSpan span = play(rank, role, i, now);
      spans.push_back({span.start, span.end});
      if (role.instructions[i].stream == Stream::kCompute) now = span.end;
    }
    out["steps"].push_back(
        {{"begin_s", begin}, {"end_s", now}, {"loss_sum", 1.5}, {"spans", std::move(spans)}});
  }
  return out;
}

inline void write_rank(const std::filesystem::path& folder, const nlohmann::json& rank) {
  std::ofstream(folder / fmt::format("rank-{}.json", rank["rank"].get<int>())) << rank.dump();
}

}  // namespace stepcast::testing
