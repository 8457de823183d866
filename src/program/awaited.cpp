// SPDX-License-Identifier: Apache-2.0
#include "program/awaited.h"

#include <algorithm>
#include <array>

#include "program/program.h"

namespace stepcast {
namespace {

using LatestOn = std::array<InstructionIndex, kStreams>;

class Resolver {
 public:
  Resolver(const std::vector<Instruction>& list, const RankGrid& grid)
      : list_(list), is_idle_(list.size(), false) {
    for (std::size_t i = 0; i < list.size(); ++i) is_idle_[i] = is_idle(list[i], grid);
  }

  bool is_needed() const { return std::ranges::find(is_idle_, true) != is_idle_.end(); }

  std::vector<Waits> resolve() {
    out_.resize(list_.size());
    LatestOn before;  // on each stream, the instruction before
    before.fill(kNoInstruction);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const Instruction& what = list_[i];
      InstructionIndex& last = before[static_cast<std::size_t>(what.stream)];
      out_[i] = waits(i, last);
      last = static_cast<InstructionIndex>(i);
    }
    return std::move(out_);
  }

 private:
  bool idle(InstructionIndex i) const { return is_idle_[static_cast<std::size_t>(i)]; }

  Waits waits(std::size_t i, InstructionIndex before) const {
    const Instruction& what = list_[i];
    const bool follows_idle = before != kNoInstruction && idle(before);
    const bool plain =
        !is_idle_[i] && !follows_idle &&
        std::ranges::none_of(what.waits, [&](InstructionIndex w) { return idle(w); });
    if (plain) return what.waits;
    LatestOn latest;  // on each stream, that it waits for
    latest.fill(kNoInstruction);
    for (const InstructionIndex wait : what.waits) follow(wait, latest);
    if (is_idle_[i] || follows_idle) follow(before, latest);
    // The order of its own stream holds anyway.
    if (!is_idle_[i]) latest[static_cast<std::size_t>(what.stream)] = kNoInstruction;
    Waits out;
    for (const InstructionIndex wait : latest) {
      if (wait != kNoInstruction) out.add(wait);
    }
    return out;
  }

  void follow(InstructionIndex wait, LatestOn& latest) const {
    if (wait == kNoInstruction) return;
    const auto later = [&](InstructionIndex i) {
      const Stream stream = list_[static_cast<std::size_t>(i)].stream;
      InstructionIndex& own = latest[static_cast<std::size_t>(stream)];
      own = std::max(own, i);
    };
    if (!idle(wait)) return later(wait);
    for (const InstructionIndex followed : out_[static_cast<std::size_t>(wait)]) later(followed);
  }

  const std::vector<Instruction>& list_;
  std::vector<bool> is_idle_;
  std::vector<Waits> out_;
};

}  // namespace

Awaited::Awaited(const Role& role, const RankGrid& grid) : list_(&role.instructions) {
  Resolver resolver(role.instructions, grid);
  if (resolver.is_needed()) own_ = resolver.resolve();
}

}  // namespace stepcast
