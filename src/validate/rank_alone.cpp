// SPDX-License-Identifier: Apache-2.0
#include "validate/rank_alone.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/walk.h"

namespace stepcast {
namespace {

class Collector {
 public:
  Collector(const Program& program, const RankGrid& grid, const Role& role)
      : program_(program), grid_(grid), role_(role) {}

  std::vector<LeftOut> collect() {
    for (const Instruction& what : role_.instructions) {
      if (const auto* call = what.as<CollectiveCall>()) {
        collective(call->group, call->pieces, call->message.bytes);
      } else if (const StageTransfer* moved = what.transfer()) {
        add("messages between stages", 1, moved->bytes);
      }
      for_each_operation(program_, role_, what, [&](const Operation& operation, const BlockVisit&) {
        const auto* inside = std::get_if<Collective>(&operation.work);
        if (inside != nullptr) collective(inside->group, 1, inside->bytes);
      });
    }
    return std::move(out_);
  }

 private:
  void add(const std::string& what, std::int64_t calls, ByteCount bytes) {
    auto found = std::find_if(out_.begin(), out_.end(),
                              [&](const LeftOut& known) { return known.what == what; });
    if (found == out_.end()) found = out_.insert(found, LeftOut{what});
    found->calls += calls;
    found->bytes += bytes;
  }

  void collective(AxisGroup group, std::int64_t calls, ByteCount bytes) {
    if (grid_.group_size(group) < 2 || bytes == 0) return;
    add(fmt::format("collectives among {} ranks", name_of(group)), calls, bytes);
  }

  const Program& program_;
  const RankGrid& grid_;
  const Role& role_;
  std::vector<LeftOut> out_;
};

}  // namespace

RankAlone rank_alone(const Program& program, const RankGrid& grid, RankId rank) {
  const GridPoint point = grid.point(rank);
  const Role& role = program.roles[static_cast<std::size_t>(point.pp)];
  return {rank, grid.size(), point, Collector(program, grid, role).collect()};
}

}  // namespace stepcast
