// SPDX-License-Identifier: Apache-2.0
#include "predict/cut_passes.h"

#include <algorithm>
#include <utility>

#include "program/walk.h"

namespace stepcast {
namespace {

// A collective that a pass is cut at, and its place among the operations of the pass.
struct CutPoint {
  std::int32_t place;
  const Operation* operation;
};

class PassCutter {
 public:
  PassCutter(const Program& program, const Role& role) : program_(program), role_(role) {}

  std::vector<Instruction> cut(const std::vector<std::vector<AxisGroup>>& cuts);

 private:
  std::vector<CutPoint> points(const Instruction& what, const std::vector<AxisGroup>& groups) const;
  void add_parts(const Instruction& what, const std::vector<CutPoint>& points);

  const Program& program_;
  const Role& role_;
  std::vector<Instruction> out_;
};

std::vector<CutPoint> PassCutter::points(const Instruction& what,
                                         const std::vector<AxisGroup>& groups) const {
  std::vector<CutPoint> out;
  std::int32_t place = 0;
  bool one_stream = true;
  for_each_operation(program_, role_, what, [&](const Operation& operation, const BlockVisit&) {
    const auto* collective = std::get_if<Collective>(&operation.work);
    one_stream = one_stream && operation.stream == BlockStream::kCompute;
    // One that is pipelined with a product is priced with it.
    const bool is_cut = collective != nullptr && !collective->overlapped &&
                        std::ranges::find(groups, collective->group) != groups.end();
    if (is_cut) out.push_back({place, &operation});
    ++place;
  });
  return one_stream ? out : std::vector<CutPoint>{};
}

// A part before every collective, and one behind the last: also where it runs nothing, because a
// part says which blocks begin in it.
void PassCutter::add_parts(const Instruction& what, const std::vector<CutPoint>& points) {
  const auto first = out_.size();
  std::int32_t begin = 0;
  const auto add_part = [&](std::int32_t end) {
    Instruction part{what.stream, what.name, *what.as<RunPass>()};
    part.as<RunPass>()->part = {begin, end};
    out_.push_back(std::move(part));
    begin = end + 1;
  };
  for (const CutPoint& point : points) {
    add_part(point.place);
    const auto& inside = std::get<Collective>(point.operation->work);
    CollectiveCall call{Purpose::kActivations, inside.kind, inside.group, inside.bytes,
                        inside.type};
    call.slot = what.as<RunPass>()->slot;
    out_.push_back({what.stream, point.operation->name, call});
  }
  add_part(OperationRange::kToTheEnd);
  Instruction& head = out_[first];
  head.waits = what.waits;
  head.birth = what.birth;
  head.host_birth = what.host_birth;
  head.holds_gradients = what.holds_gradients;
  Instruction& tail = out_.back();
  tail.death = what.death;
  tail.host_death = what.host_death;
  tail.frees_gradients = what.frees_gradients;
  tail.frees_parameters = what.frees_parameters;
}

std::vector<Instruction> PassCutter::cut(const std::vector<std::vector<AxisGroup>>& cuts) {
  std::vector<InstructionIndex> now;  // of each old instruction: the new one that ends it
  for (std::size_t i = 0; i < role_.instructions.size(); ++i) {
    const Instruction& what = role_.instructions[i];
    const std::size_t first = out_.size();
    const std::vector<CutPoint> here =
        cuts[i].empty() ? std::vector<CutPoint>{} : points(what, cuts[i]);
    if (here.empty()) {
      out_.push_back(what);
    } else {
      add_parts(what, here);
    }
    for (InstructionIndex& wait : out_[first].waits) wait = now[static_cast<std::size_t>(wait)];
    now.push_back(static_cast<InstructionIndex>(out_.size() - 1));
  }
  return std::move(out_);
}

}  // namespace

Program cut_passes(const Program& program, const Cuts& cuts) {
  Program out = program;
  for (std::size_t stage = 0; stage < program.roles.size(); ++stage) {
    out.roles[stage].instructions = PassCutter(program, program.roles[stage]).cut(cuts[stage]);
  }
  return out;
}

}  // namespace stepcast
