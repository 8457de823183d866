// SPDX-License-Identifier: Apache-2.0
#include "predict/shared_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/work_limits.h"
#include "layout/scenario.h"
#include "predict/block_cost.h"
#include "predict/block_replay.h"
#include "predict/pricing.h"
#include "program/pass_pair.h"
#include "program/walk.h"

namespace stepcast {
namespace {

// A stage may lose this share of the time of its passes to shared links without being asked: to all
// traffic whose passes are not stamped, together. It is far inside the interval of any forecast,
// and a stamped pass takes some dozen times as long to replay. Nothing else stands in for what is
// left out, and tests/predict/stamped_passes_test.cpp holds it.
constexpr double kMostLeftOut = 0.001;

// The share of their capacity that some traffic uses of the links of an orbit.
struct LinkUse {
  std::int32_t links;  // Orbits::link_orbit()
  double share;
};

// Sums shares by orbit of links. One sum serves many kinds of traffic, one after the other: a
// cluster has many links, and one kind of traffic uses few.
class UseSum {
 public:
  UseSum(const std::vector<Link>& links, const Orbits& orbits)
      : links_(links), orbits_(orbits), share_(static_cast<std::size_t>(orbits.link_orbits()), 0) {}

  // The loads of one activity of an orbit of `count`, at `rate`.
  void add(const std::vector<LinkLoad>& loads, double rate, std::int64_t count) {
    for (const LinkLoad& load : loads) {
      const std::int32_t links = orbits_.link_orbit(load.link);
      const double share = load.weight * rate / links_[load.link.index()].capacity.value();
      at(links) += share * static_cast<double>(count) / orbits_.links_alike(links);
    }
  }
  void raise(std::int32_t links, double share) { at(links) = std::max(at(links), share); }

  // Returns what was summed since the last call.
  std::vector<LinkUse> take() {
    std::vector<LinkUse> out;
    out.reserve(used_.size());
    for (const std::int32_t links : used_) {
      out.push_back({links, std::exchange(share_[static_cast<std::size_t>(links)], 0)});
    }
    used_.clear();
    return out;
  }

 private:
  double& at(std::int32_t links) {
    double& share = share_[static_cast<std::size_t>(links)];
    if (share == 0) used_.push_back(links);
    return share;
  }

  const std::vector<Link>& links_;
  const Orbits& orbits_;
  std::vector<double> share_;  // 0: not used
  std::vector<std::int32_t> used_;
};

// The most on each link of several loads.
std::vector<LinkLoad> most_of(std::vector<LinkLoad> loads) {
  std::ranges::sort(loads, [](const LinkLoad& a, const LinkLoad& b) {
    return a.link != b.link ? a.link < b.link : a.weight > b.weight;
  });
  const auto same = [](const LinkLoad& a, const LinkLoad& b) { return a.link == b.link; };
  loads.erase(std::unique(loads.begin(), loads.end(), same), loads.end());
  return loads;
}

// Traffic of one kind beside the passes: the collectives of a stage on one stream, or the messages
// from one stage to another.
struct Beside {
  std::vector<LinkUse> use;  // when all of it is under way at once
  std::int32_t stage = -1;   // whose passes send it; -1: not inside passes
  Seconds time;              // that one rank spends on it in a step
  std::map<std::int32_t, std::vector<InstructionIndex>> issued;  // by stage
  std::set<Message> messages;                                    // whose use is known
};

// A role's sends and receives, by peer and whether it sends: few peers, many messages.
using IssuedTransfers = std::map<std::pair<std::int32_t, bool>, std::vector<InstructionIndex>>;

// Traffic that shares links with a pass, and the part of their time together that the pass loses.
struct Meeting {
  const Beside* beside;
  double share;
};

// A pass costs `all`, and collectives of one group take `in_group`, also beside its kernels.
struct PassTime {
  Seconds all, in_group;
};

// The collectives of a group inside the passes of a stage may lose this to other traffic, at most.
struct Loss {
  AxisGroup group;
  Seconds most, of;          // at most `most` of `of`, the time of all passes
  std::vector<bool> passes;  // by instruction: it may run beside that traffic
};

class StampFinder {
 public:
  StampFinder(const Scenario& scenario, const Program& program, const RankGrid& grid,
              const Traffic& traffic, const Pricing& pricing)
      : program_(program),
        grid_(grid),
        traffic_(traffic),
        pricing_(pricing),
        costs_(scenario, pricing.kernels, pricing.collectives),
        in_blocks_(groups_in_blocks(program)),
        sum_(scenario.cluster.topology.links(), traffic.orbits),
        most_(scenario.cluster.topology.links(), traffic.orbits),
        own_(static_cast<std::size_t>(traffic.orbits.link_orbits()), 0) {}

  Stamps find(const std::vector<double>& foreign);

 private:
  void add_foreign(const std::vector<double>& foreign);
  void find_traffic_beside();
  void add_passes_of_stages();
  void add_collective(const Role& role, InstructionIndex i);
  void add_transfers(const Role& role, const IssuedTransfers& issued);
  void add_copy(const Role& role, InstructionIndex i, const HostCopy& copy);
  Beside& messages_over(const PairTraffic& pairs);
  // Passes of the role that may run beside the traffic.
  std::vector<bool> passes_beside(const Role& role, const Beside& beside);
  std::optional<Loss> find_loss(const Role& role, const GroupTraffic& groups);
  void find_in_role(const Role& role);
  void join_pairs();  // the first of two passes that alternate has the stamps of both
  std::vector<PassTime> time_passes(const Role& role, AxisGroup group);
  std::vector<Message> messages_of(const Role& role, AxisGroup group) const;
  // The traffic that shares links with what blocks of the role send in the group.
  std::vector<Meeting> find_meetings(const Role& role, const GroupTraffic& groups);
  const std::vector<LinkUse>& use_of_blocks(const Role& role, const GroupTraffic& groups);
  // The part of the time together that traffic of a pass, whose use of links is in own_, loses.
  double share_lost(const Beside& beside) const;
  std::int32_t stage_of(RankId rank) const { return grid_.point(rank).pp; }
  // A group that crosses stages is part of no macro activity.
  bool is_in_blocks(AxisGroup group) const {
    return !group.crosses_stages() && std::ranges::find(in_blocks_, group) != in_blocks_.end();
  }

  const Program& program_;
  const RankGrid& grid_;
  const Traffic& traffic_;
  const Pricing& pricing_;
  BlockCosts costs_;
  std::vector<AxisGroup> in_blocks_;  // that communicate inside passes or the update
  std::vector<Beside> beside_;
  std::map<std::tuple<AxisGroup, std::int32_t, Stream>, std::size_t> of_collectives_;
  std::map<const PairTraffic*, std::size_t> of_pairs_;
  std::vector<std::vector<TransferWindow>> windows_;  // by stage; empty: not asked for yet
  std::map<std::pair<std::int32_t, AxisGroup>, std::vector<LinkUse>> uses_of_blocks_;  // by stage
  Stamps stamps_;
  UseSum sum_, most_;
  std::vector<double> own_;  // by orbit of links: what the blocks of the stage at hand use
};

void StampFinder::add_collective(const Role& role, InstructionIndex i) {
  const Instruction& what = role.instructions[static_cast<std::size_t>(i)];
  const auto& call = *what.as<CollectiveCall>();
  const GroupTraffic* groups = traffic_.find(call.group);
  if (groups == nullptr || groups->in_blocks || call.message.bytes == 0) return;
  const auto message = static_cast<std::size_t>(groups->message(call.piece()));
  const RankId rank = grid_.rank({0, 0, 0, role.stage});
  const GroupOrbit& of_rank =
      groups->orbits[static_cast<std::size_t>(traffic_.orbit_of(*groups, rank))];
  const std::int32_t first = stage_of(of_rank.members.front());  // of those that it joins
  const auto [known, fresh] =
      of_collectives_.try_emplace({call.group, first, what.stream}, beside_.size());
  if (fresh) beside_.push_back({});
  Beside& own = beside_[known->second];
  own.issued[role.stage].push_back(i);
  if (first != role.stage) return;
  own.time += of_rank.prices[message].price.time() * static_cast<double>(call.pieces);
  // Messages of one stream follow each other: the most of each link that one of them uses counts.
  if (!own.messages.insert(call.piece()).second) return;
  for (const GroupOrbit& orbit : groups->orbits) {
    if (stage_of(orbit.members.front()) != first) continue;
    const Priced& priced = orbit.prices[message];
    if (priced.loads < 0) continue;
    sum_.add(orbit.loads[static_cast<std::size_t>(priced.loads)], priced.price.rate_bound.value(),
             orbit.groups);
  }
  for (const auto& [link, share] : own.use) most_.raise(link, share);
  for (const auto& [link, share] : sum_.take()) most_.raise(link, share);
  own.use = most_.take();
}

// Returns what is known of the messages over these pairs.
Beside& StampFinder::messages_over(const PairTraffic& pairs) {
  const auto [known, fresh] = of_pairs_.try_emplace(&pairs, beside_.size());
  if (!fresh) return beside_[known->second];
  for (const PairOrbit& pair : pairs.orbits) {
    sum_.add(pair.loads, pair.price.rate_bound.value(), pair.pairs);
  }
  beside_.push_back({sum_.take(), -1, {}, {}, {}});
  return beside_.back();
}

void StampFinder::add_transfers(const Role& role, const IssuedTransfers& issued) {
  for (const auto& [at, instructions] : issued) {
    const auto [peer, sends] = at;
    const PairTraffic& pairs = *traffic_.find(sends ? role.stage : peer, sends ? peer : role.stage);
    Beside& own = messages_over(pairs);
    if (sends) {
      own.time += pairs.orbits.front().price.time() * static_cast<double>(instructions.size());
    }
    std::vector<InstructionIndex>& of_stage = own.issued[role.stage];
    of_stage.insert(of_stage.end(), instructions.begin(), instructions.end());
  }
}

void StampFinder::add_copy(const Role& role, InstructionIndex i, const HostCopy& copy) {
  const PairTraffic& pairs = *traffic_.find_copies(role.stage, copy.direction);
  Beside& own = messages_over(pairs);
  own.issued[role.stage].push_back(i);
  own.time += Bytes(static_cast<double>(copy.bytes)) / pairs.orbits.front().price.rate_bound;
}

// Passes of one stage run beside those of another, whose groups may use the same links.
void StampFinder::add_passes_of_stages() {
  if (program_.roles.size() < 2) return;
  struct Sent {
    const Role* role;
    AxisGroup group;
    std::vector<LinkUse> use;
  };
  constexpr std::int32_t kNobody = -1, kSeveral = -2;
  std::vector<Sent> sent;
  std::vector<std::int32_t> stage_on(own_.size(), kNobody);  // by orbit of links
  for (const GroupTraffic& groups : traffic_.groups) {
    if (!is_in_blocks(groups.group)) continue;
    for (const Role& role : program_.roles) {
      sent.push_back({&role, groups.group, use_of_blocks(role, groups)});
      for (const auto& [link, share] : sent.back().use) {
        std::int32_t& stage = stage_on[static_cast<std::size_t>(link)];
        stage = stage == kNobody || stage == role.stage ? role.stage : kSeveral;
      }
    }
  }
  for (Sent& one : sent) {
    std::erase_if(one.use, [&](const LinkUse& use) {
      return stage_on[static_cast<std::size_t>(use.links)] != kSeveral;
    });
    if (one.use.empty()) continue;
    Beside& own = beside_.emplace_back();
    own.use = std::move(one.use);
    own.stage = one.role->stage;
    for (const PassTime& time : time_passes(*one.role, one.group)) own.time += time.in_group;
  }
}

void StampFinder::find_traffic_beside() {
  for (const Role& role : program_.roles) {
    IssuedTransfers transfers;
    for (InstructionIndex i = 0; i < static_cast<InstructionIndex>(role.instructions.size()); ++i) {
      const Instruction& what = role.instructions[static_cast<std::size_t>(i)];
      if (what.stream == Stream::kCompute) continue;
      if (const StageTransfer* moved = what.transfer()) {
        transfers[{moved->peer, what.is<Send>()}].push_back(i);
      } else if (what.is<CollectiveCall>()) {
        add_collective(role, i);
      } else if (const auto* copy = what.host_copy()) {
        add_copy(role, i, *copy);
      }
    }
    add_transfers(role, transfers);
  }
}

std::vector<bool> StampFinder::passes_beside(const Role& role, const Beside& beside) {
  const std::size_t count = role.instructions.size();
  const auto own = beside.issued.find(role.stage);
  // Another stage may send at any time of this one.
  if (own == beside.issued.end()) return std::vector<bool>(count, true);
  std::vector<TransferWindow>& windows = windows_[static_cast<std::size_t>(role.stage)];
  if (windows.empty()) windows = transfer_windows(role);
  // Windows are long and overlap: they are counted where they open and close.
  std::vector<std::int32_t> change(count + 1, 0);
  for (const InstructionIndex i : own->second) {
    const TransferWindow& window = windows[static_cast<std::size_t>(i)];
    if (window.after + 1 >= window.before) continue;
    ++change[static_cast<std::size_t>(window.after + 1)];
    --change[static_cast<std::size_t>(window.before)];
  }
  std::vector<bool> out(count);
  std::int32_t open = 0;
  for (std::size_t i = 0; i < count; ++i) out[i] = (open += change[i]) > 0;
  return out;
}

std::vector<PassTime> StampFinder::time_passes(const Role& role, AxisGroup group) {
  const RankId rank = grid_.rank({0, 0, 0, role.stage});
  costs_.use_groups({{group, devices_of(grid_.members(group, rank))}});
  std::map<std::pair<BlockId, Pass>, PassTime> of_block;
  const auto time_block = [&](const BlockVisit& at) -> const PassTime& {
    const auto [found, fresh] = of_block.try_emplace({at.block, at.pass});
    if (fresh) {
      auto priced = costs_.price_each(operations_of(program_.block(at.block), at.pass));
      found->second.all = replay_block(priced).gpu;
      for (PricedOperation& one : priced) found->second.in_group += one.cost.communication(group);
    }
    return found->second;
  };
  std::vector<PassTime> out;
  StopPoint stop;
  for (const Instruction& what : role.instructions) {
    stop.pass();
    PassTime& time = out.emplace_back();
    if (!what.is_run()) continue;
    for_each_block(role, what, [&](const BlockVisit& at) {
      const PassTime& block = time_block(at);
      time.all += block.all;
      time.in_group += block.in_group;
    });
  }
  return out;
}

// Lists the messages that the group's collectives inside the stage's passes and its update move.
std::vector<Message> StampFinder::messages_of(const Role& role, AxisGroup group) const {
  std::set<Message> out;
  for (const CountedRun& run : distinct_runs(role)) {
    for_each_operation(program_, role, *run.first, [&](const Operation& one, const BlockVisit&) {
      const auto* collective = std::get_if<Collective>(&one.work);
      if (collective != nullptr && collective->group == group) out.insert(message_of(*collective));
    });
  }
  return {out.begin(), out.end()};
}

// The largest share of each link that the collectives inside the stage's blocks use. A rank
// runs one of them at a time.
const std::vector<LinkUse>& StampFinder::use_of_blocks(const Role& role,
                                                       const GroupTraffic& groups) {
  const auto [known, fresh] = uses_of_blocks_.try_emplace({role.stage, groups.group});
  if (!fresh) return known->second;
  const std::vector<Message> messages = messages_of(role, groups.group);
  for (const GroupOrbit& orbit : groups.orbits) {
    if (stage_of(orbit.members.front()) != role.stage) continue;
    const std::vector<DeviceId> devices = devices_of(orbit.members);
    std::vector<LinkLoad> all;
    for (const auto& [way, price] : groups.fastest(orbit, messages)) {
      for (LinkLoad load : pricing_.collectives.loads(price, way.kind, devices)) {
        load.weight *= price.rate_bound.value();
        all.push_back(load);
      }
    }
    sum_.add(most_of(std::move(all)), 1, orbit.groups);
  }
  return known->second = sum_.take();
}

double StampFinder::share_lost(const Beside& beside) const {
  double lost = 0;
  for (const auto& [link, use] : beside.use) {
    const double own = own_[static_cast<std::size_t>(link)];
    // Siblings in lockstep are in the price of the macro activity.
    if (own > 0) lost = std::max(lost, 1 - std::max(1.0, own) / (use + own));
  }
  return lost;
}

std::vector<Meeting> StampFinder::find_meetings(const Role& role, const GroupTraffic& groups) {
  const std::vector<LinkUse>& own = use_of_blocks(role, groups);
  for (const auto& [link, use] : own) own_[static_cast<std::size_t>(link)] = use;
  std::vector<Meeting> out;
  for (const Beside& beside : beside_) {
    if (beside.stage == role.stage) continue;
    const double share = share_lost(beside);
    if (share > 1e-9) out.push_back({&beside, share});
  }
  for (const auto& [link, use] : own) own_[static_cast<std::size_t>(link)] = 0;
  return out;
}

std::optional<Loss> StampFinder::find_loss(const Role& role, const GroupTraffic& groups) {
  const std::vector<Meeting> met = find_meetings(role, groups);
  if (met.empty()) return std::nullopt;
  const std::vector<PassTime> times = time_passes(role, groups.group);
  Loss out{groups.group, {}, {}, std::vector<bool>(times.size(), false)};
  Seconds inside;
  for (const PassTime& time : times) {
    out.of += time.all;
    inside += time.in_group;
  }
  for (const auto& [beside, share] : met) out.most += std::min(inside, beside->time) * share;
  // Windows need not be known where even that is too little.
  if (out.most * static_cast<double>(traffic_.groups.size()) <= out.of * kMostLeftOut) return out;
  out.most = {};
  for (const Meeting& one : met) {
    const std::vector<bool> passes = passes_beside(role, *one.beside);
    Seconds together;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!passes[i] || times[i].in_group.value() <= 0) continue;
      together += times[i].in_group;
      out.passes[i] = true;
    }
    out.most += std::min(together, one.beside->time) * one.share;
  }
  return out;
}

// Groups are left out from the one that loses least on.
void StampFinder::find_in_role(const Role& role) {
  std::vector<Loss> losses;
  for (const GroupTraffic& groups : traffic_.groups) {
    if (!is_in_blocks(groups.group)) continue;
    if (auto loss = find_loss(role, groups)) losses.push_back(std::move(*loss));
  }
  std::ranges::stable_sort(losses, {}, &Loss::most);
  Seconds left_out;
  for (const Loss& loss : losses) {
    left_out += loss.most;
    if (left_out <= loss.of * kMostLeftOut) continue;
    for (std::size_t i = 0; i < loss.passes.size(); ++i) {
      if (loss.passes[i]) {
        stamps_[static_cast<std::size_t>(role.stage)][i].push_back(loss.group);
      }
    }
  }
}

void StampFinder::join_pairs() {
  for (const Role& role : program_.roles) {
    auto& own = stamps_[static_cast<std::size_t>(role.stage)];
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!alternates(role.instructions[i]) || leads_pair(role.instructions[i])) continue;
      for (const AxisGroup group : std::exchange(own[i], {})) {
        if (std::ranges::find(own[i - 1], group) == own[i - 1].end()) own[i - 1].push_back(group);
      }
    }
  }
}

// Other jobs send at any time of a step, for as long as it lasts.
void StampFinder::add_foreign(const std::vector<double>& foreign) {
  for (std::size_t l = 0; l < foreign.size(); ++l) {
    if (foreign[l] > 0) sum_.add({{LinkId(l), foreign[l]}}, 1, 1);
  }
  if (std::vector<LinkUse> use = sum_.take(); !use.empty()) {
    constexpr Seconds kAlways{1e12};
    beside_.push_back({std::move(use), -1, kAlways, {}, {}});
  }
}

Stamps StampFinder::find(const std::vector<double>& foreign) {
  find_traffic_beside();
  add_passes_of_stages();
  add_foreign(foreign);
  if (beside_.empty()) return {};
  windows_.resize(program_.roles.size());
  for (const Role& role : program_.roles) {
    stamps_.emplace_back(role.instructions.size());
  }
  for (const Role& role : program_.roles) find_in_role(role);
  join_pairs();
  const auto is_stamped = [](const auto& of_stage) {
    return std::ranges::any_of(of_stage, [](const auto& groups) { return !groups.empty(); });
  };
  return std::ranges::any_of(stamps_, is_stamped) ? std::move(stamps_) : Stamps{};
}

}  // namespace

std::vector<TransferWindow> transfer_windows(const Role& role) {
  const std::vector<Instruction>& list = role.instructions;
  const auto count = static_cast<InstructionIndex>(list.size());
  std::vector<TransferWindow> out(list.size(), {kNoInstruction, count});
  const auto at = [&](InstructionIndex i) -> TransferWindow& {
    return out[static_cast<std::size_t>(i)];
  };
  const auto computes = [&](InstructionIndex i) {
    return list[static_cast<std::size_t>(i)].stream == Stream::kCompute;
  };
  std::array<InstructionIndex, kStreams> before;
  before.fill(kNoInstruction);
  InstructionIndex waited =
      kNoInstruction;  // the last that has ended, because the host has waited for it
  for (InstructionIndex i = 0; i < count; ++i) {
    const Instruction& what = list[static_cast<std::size_t>(i)];
    InstructionIndex& last = before[static_cast<std::size_t>(what.stream)];
    InstructionIndex ended = waited;
    const auto follow = [&](InstructionIndex j) {
      if (j != kNoInstruction) ended = std::max(ended, computes(j) ? j : at(j).after);
    };
    follow(last);
    for (const InstructionIndex wait : what.waits) follow(wait);
    at(i).after = ended;
    if (what.is<HostWait>()) waited = ended;
    last = i;
  }
  std::array<InstructionIndex, kStreams> next;
  next.fill(count);
  InstructionIndex next_compute = count;
  for (InstructionIndex i = count; i-- > 0;) {
    const Instruction& what = list[static_cast<std::size_t>(i)];
    const auto first_of = [&](InstructionIndex j) { return computes(j) ? j : at(j).before; };
    if (what.is<HostWait>()) at(i).before = next_compute;
    InstructionIndex& following = next[static_cast<std::size_t>(what.stream)];
    if (following < count) at(i).before = std::min(at(i).before, first_of(following));
    // Instructions that it waits for have ended before what it lets go on.
    for (const InstructionIndex wait : what.waits) {
      at(wait).before = std::min(at(wait).before, first_of(i));
    }
    following = i;
    if (computes(i)) next_compute = i;
  }
  return out;
}

Stamps find_stamps(const Scenario& scenario, const Program& program, const RankGrid& grid,
                   const Traffic& traffic, const Pricing& pricing,
                   const std::vector<double>& foreign) {
  // Ranks on processors run kernel by kernel, and what they send is no load on a link of its own.
  if (scenario.cluster.spec.accelerator.is_cpu() || traffic.groups.empty()) return {};
  return StampFinder(scenario, program, grid, traffic, pricing).find(foreign);
}

}  // namespace stepcast
