// SPDX-License-Identifier: Apache-2.0
#include "predict/meetings.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast {
namespace {

struct Tagged {
  std::int64_t tag;
  std::int32_t instruction;
  bool operator<(const Tagged& other) const { return tag < other.tag; }
};

// Transfers from one stage to another, in the sender's order and in the receiver's.
struct Lane {
  std::vector<Tagged> sends, receives;
};

std::string lonely(const Program& program, std::size_t stage, std::int32_t instruction) {
  const Instruction& what =
      program.roles[stage].instructions[static_cast<std::size_t>(instruction)];
  return fmt::format("stage {} {} number {} meets no instruction of stage {}", stage, what.name,
                     instruction, what.transfer()->peer);
}

}  // namespace

Result<std::vector<std::vector<std::int32_t>>> match_transfers(const Program& program) {
  const std::size_t stages = program.roles.size();
  std::vector<Lane> lanes(stages * stages);
  std::vector<std::vector<std::int32_t>> partner(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const std::vector<Instruction>& list = program.roles[s].instructions;
    partner[s].assign(list.size(), -1);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const StageTransfer* moved = list[i].transfer();
      if (moved == nullptr) continue;
      const Tagged entry{moved->tag, static_cast<std::int32_t>(i)};
      const auto peer = static_cast<std::size_t>(moved->peer);
      if (list[i].is<Send>()) {
        lanes[s * stages + peer].sends.push_back(entry);
      } else {
        lanes[peer * stages + s].receives.push_back(entry);
      }
    }
  }
  Errors errors;
  for (std::size_t from = 0; from < stages; ++from) {
    for (std::size_t to = 0; to < stages; ++to) {
      auto& [sends, receives] = lanes[from * stages + to];
      for (auto* side : {&sends, &receives}) {
        if (!std::is_sorted(side->begin(), side->end())) std::sort(side->begin(), side->end());
      }
      const auto fail = [&](std::size_t stage, std::int32_t i) {
        if (errors.empty()) {
          errors.push_back({ErrorCode::kIllegal, lonely(program, stage, i), "", "layout.schedule",
                            "the schedule must pair every send with a receive"});
        }
      };
      const std::size_t common = std::min(sends.size(), receives.size());
      for (std::size_t i = 0; i < common; ++i) {
        if (sends[i].tag != receives[i].tag) fail(from, sends[i].instruction);
        partner[from][static_cast<std::size_t>(sends[i].instruction)] = receives[i].instruction;
        partner[to][static_cast<std::size_t>(receives[i].instruction)] = sends[i].instruction;
      }
      if (sends.size() > common) fail(from, sends[common].instruction);
      if (receives.size() > common) fail(to, receives[common].instruction);
    }
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return partner;
}

std::vector<std::int32_t> find_barrier(const SimulationInput& input) {
  const auto classes = static_cast<std::int32_t>(input.symmetry.ranks.size());
  std::vector<std::int32_t> barrier;
  for (std::int32_t c = 0; c < classes; ++c) {
    const std::vector<Instruction>& list = input.costs.role(c).instructions;
    std::int32_t found = -1;
    std::int32_t next = -1;  // the one that follows, idle ones left out
    for (auto i = static_cast<std::int32_t>(list.size()); i-- > 0 && found < 0;) {
      const Instruction& what = list[static_cast<std::size_t>(i)];
      if (is_idle(what, input.grid)) continue;
      const auto* call = what.as<CollectiveCall>();
      if (next >= 0 && call != nullptr && call->group.joins_all_stages()) {
        const Instruction& after = list[static_cast<std::size_t>(next)];
        if (after.is<HostWait>() && after.waits.contains(i)) found = i;
      }
      next = i;
    }
    if (found < 0) return {};
    barrier.push_back(found);
  }
  return barrier;
}

}  // namespace stepcast
