// SPDX-License-Identifier: Apache-2.0
#include "validate/measured_slices.h"

#include <algorithm>
#include <map>

#include "predict/attribution.h"
#include "predict/prediction.h"
#include "program/instruction.h"
#include "program/program.h"

namespace stepcast {
namespace {

// The first step has nothing before it: its length is not that of the others.
std::size_t median_step(const RankFile& file) {
  std::vector<std::size_t> steps;
  for (std::size_t step = file.steps.size() > 1 ? 1 : 0; step < file.steps.size(); ++step) {
    steps.push_back(step);
  }
  const auto length = [&](std::size_t step) {
    return file.steps[step].end - file.steps[step].begin;
  };
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::nth_element(steps.begin(), middle, steps.end(), [&](std::size_t a, std::size_t b) {
    return length(a) != length(b) ? length(a) < length(b) : a < b;
  });
  return *middle;
}

bool is_drawn(const Instruction& what, const MeasuredSpan& span) {
  return !what.is<Receive>() && !what.is<HostWait>() && span.end > span.start;
}

}  // namespace

std::vector<TraceSlice> measured_slices(const Program& program, const RankGrid& grid,
                                        const std::vector<RankFile>& files) {
  std::vector<TraceSlice> out;
  std::map<std::int32_t, const RankFile*> of_stage;  // files are ordered by rank
  for (const RankFile& file : files) of_stage.emplace(grid.point(file.rank).pp, &file);
  if (of_stage.empty() || files.front().steps.empty()) return out;
  const std::size_t step = median_step(*of_stage.begin()->second);
  double begin = of_stage.begin()->second->steps[step].begin;
  for (const auto& [stage, file] : of_stage) begin = std::min(begin, file->steps[step].begin);
  for (const auto& [stage, file] : of_stage) {
    const Role& role = program.roles[static_cast<std::size_t>(stage)];
    const std::vector<MeasuredSpan>& spans = file->steps[step].spans;
    for (std::size_t i = 0; i < std::min(spans.size(), role.instructions.size()); ++i) {
      const Instruction& what = role.instructions[i];
      if (!is_drawn(what, spans[i])) continue;
      out.push_back(slice_of(what, stage, Seconds(spans[i].start - begin),
                             Seconds(spans[i].end - spans[i].start)));
    }
  }
  return out;
}

}  // namespace stepcast
