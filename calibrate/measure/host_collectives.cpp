// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/host_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <tuple>

#include "core/assert.h"
#include "core/json_tree.h"
#include "core/statistics.h"
#include "core/text/escape.h"
#include "cost/mpi_curve.h"
#include "layout/scenario.h"
#include "program/program.h"

namespace stepcast {
namespace {

constexpr ByteCount kSmallest = 1 << 10;
constexpr double kShareOfKernels = 1.0 / 60;  // of the kernels beside one transfer
// Ranks that come from their kernels do not arrive at one instant, as they would from a barrier.
// The first has begun to nap, and finds the last one's message a nap later.
constexpr double kArrivalSpread_s = 0.5e-3;
// Kernels beside a transfer are measured with the largest message that takes no longer than this. A
// short message among many ranks waits for their time slices rather than for its bytes.
constexpr double kLongestBesideKernels_s = 4;
constexpr std::int64_t kFewestBesideKernels = 4;  // samples
constexpr double kLeastShare = 0.01;              // of a core: less is noise
constexpr double kShortestBaseline_s = 5e-3, kLongestBaseline_s = 50e-3;

double process_cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double now_s() { return seconds_of(Clock::now()); }

// Sizes that are needed, and powers of 16 below and between them.
std::vector<ByteCount> with_grid(std::set<ByteCount> sizes) {
  const ByteCount largest = *sizes.rbegin();
  for (ByteCount size = kSmallest; size < largest; size *= 16) sizes.insert(size);
  if (sizes.size() == 1) sizes.insert(4 * largest);  // a curve has two points
  return {sizes.begin(), sizes.end()};
}

// Lists what `program` needs and sends, with sizes between for interpolation.
std::vector<CommunicationCurve> communication_curves(const Program& program,
                                                     const NeededMeasurements& needed) {
  std::map<std::tuple<CollectiveKind, AxisGroup, bool, std::optional<StagePair>>,
           std::set<ByteCount>>
      sizes;
  for (const NeededCollective& one : needed.collectives) {
    sizes[{one.message.kind, one.group, one.on_compute, {}}].insert(one.message.bytes);
  }
  for (const Role& role : program.roles) {
    for (const Instruction& what : role.instructions) {
      const auto* send = what.as<Send>();
      if (send == nullptr) continue;
      StagePair stages{std::min(role.stage, send->peer), std::max(role.stage, send->peer)};
      // Under virtual stages the last one sends to the first.
      if (stages.to - stages.from > 1) std::swap(stages.from, stages.to);
      sizes[{CollectiveKind::kSendReceive, AxisGroup::kPipeline, false, stages}].insert(
          send->bytes);
    }
  }
  std::vector<CommunicationCurve> out;
  for (auto& [key, of_this] : sizes) {
    const auto& [kind, group, compute, stages] = key;
    out.push_back({kind, group, compute, stages, with_grid(std::move(of_this))});
  }
  return out;
}

}  // namespace

HostCollectives::HostCollectives(const RankContext& rank, const Scenario& scenario,
                                 const Program& program, const NeededMeasurements& needed)
    : rank_(rank),
      scenario_(scenario),
      grid_(scenario.layout),
      random_(rank.job.seed, static_cast<std::uint64_t>(rank.world.rank())),
      curves_(communication_curves(program, needed)) {}

std::vector<CollectiveBackend::Curve> HostCollectives::curves() const {
  std::vector<Curve> out;
  for (const CommunicationCurve& curve : curves_)
    out.push_back({name_of(curve.collective), curve.sizes});
  return out;
}

// The ranks that this one communicates with, and who measures beside them.
CollectiveBackend::Meeting HostCollectives::meet(std::size_t index) {
  const CommunicationCurve& curve = curves_[index];
  curve_ = &curve;
  members_ = nullptr;
  sends_ = false;
  meeting_ = {};
  const RankId own(rank_.world.rank());
  std::vector<RankId> members;
  if (curve.collective != CollectiveKind::kSendReceive) {
    if (grid_.group_of(curve.group, own) >= 0) members = grid_.members(curve.group, own);
    meeting_.concurrent = grid_.group_count(curve.group);
  } else {
    const auto [from, to] = *curve.stages;
    GridPoint point = grid_.point(own);
    if (point.pp == from || point.pp == to) {
      for (const std::int32_t stage : {from, to}) {
        point.pp = stage;
        members.push_back(grid_.rank(point));
      }
    }
    meeting_.concurrent = grid_.size() / scenario_.layout.pp;
    sends_ = grid_.point(own).pp == from;
  }
  const int tag = next_tag_++;
  if (members.size() < 2) return meeting_;
  std::vector<int> ranks;
  for (const RankId member : members) {
    ranks.push_back(member.value);
    meeting_.placement.push_back(scenario_.cluster.node_of(DeviceId(member.value)));
  }
  groups_.push_back(rank_.world.group(ranks, tag));
  members_ = groups_.back().get();
  meeting_.takes_part = true;
  meeting_.is_first = members_->rank() == 0;
  return meeting_;
}

std::unique_ptr<Request> HostCollectives::start(std::size_t count) {
  const std::span<float> data(data_.data(), count);
  switch (curve_->collective) {
    case CollectiveKind::kSendReceive:
      return sends_ ? members_->start_send(data, 1, 1) : members_->start_receive(data, 0, 1);
    case CollectiveKind::kAllGather:
      return members_->start_all_gather(data);
    case CollectiveKind::kReduceScatter:
      return members_->start_reduce_scatter(data);
    case CollectiveKind::kAllReduce:
      return members_->start_all_reduce(data, Reduction::kSum);
    case CollectiveKind::kAllToAll: {
      // Every rank gets an equal part.
      const std::size_t ranks = static_cast<std::size_t>(members_->size());
      const std::size_t sent = count / ranks * ranks;
      received_.resize(std::max(received_.size(), sent));
      return members_->start_all_to_all(data.first(sent), {received_.data(), sent});
    }
    case CollectiveKind::kBroadcast:
      break;
  }
  STEPCAST_ASSERT(false, "the executor runs no other collective");
  return nullptr;
}

// Times from the arrival of the last member to the end on the last one. A machine's clocks agree.
HostCollectives::Moved HostCollectives::move(std::size_t count, BusyCore* beside) {
  Communicator& group = *members_;
  // A common origin just before, so that times fit into floats to the nanosecond.
  const double now = now_s(), coarse = std::floor(now / 64);
  float base[] = {static_cast<float>(coarse), static_cast<float>(now - 64 * coarse)};
  group.broadcast(base, 0);
  const double origin = 64.0 * static_cast<double>(base[0]) + static_cast<double>(base[1]);
  data_.resize(std::max(data_.size(), count));
  std::fill_n(data_.begin(), count, 1.0F);
  group.barrier();
  const double arrival = now_s() + kArrivalSpread_s * random_.uniform();
  while (now_s() < arrival) {
  }
  rank_.report.heartbeat();
  const double cpu = process_cpu_s(), begin = now_s();
  Moved out;
  double end = 0;
  if (curve_->on_compute_stream) {
    start(count)->wait();
    end = now_s();
  } else {
    Transfer transfer;
    transfer.starts = {[&](DeviceStream) { return start(count); }};
    const EventHandle moved = engine_.post(Stream::kReduce, std::move(transfer));
    if (beside != nullptr) {
      beside->begin();
      while (!engine_.has_ended(moved)) beside->run();
      out.lost_s = beside->lost_s();
    }
    engine_.wait(moved);
    // Kernels that run are not told of the end; who waits for it wakes first.
    end = beside != nullptr ? seconds_of(moved->end) : now_s();
  }
  cpu_s_ += process_cpu_s() - cpu;
  wall_s_ += end - begin;
  float times[] = {static_cast<float>(begin - origin), static_cast<float>(end - origin)};
  group.all_reduce(times, Reduction::kMaximum);
  out.seconds = static_cast<double>(times[1]) - static_cast<double>(times[0]);
  return out;
}

std::string HostCollectives::key_of(ByteCount bytes) const {
  return fmt::format("{} {} bytes {} ranks of {} at {} beside {}{}", name_of(curve_->collective),
                     bytes, rank_.world.size(), scenario_.cluster.spec.name,
                     json_text(SortedJson(meeting_.placement)), meeting_.concurrent,
                     curve_->on_compute_stream ? "" : " on a stream");
}

void HostCollectives::begin_size(ByteCount) { cpu_s_ = wall_s_ = 0; }

Sample HostCollectives::sample(ByteCount bytes) {
  return {move(static_cast<std::size_t>(bytes) / sizeof(float)).seconds, 1, {}};
}

SortedJson HostCollectives::facts_of_size() const {
  return {{"cpu_share", wall_s_ > 0 ? std::min(1.0, cpu_s_ / wall_s_) : 0.0}};
}

double HostCollectives::longest_sharing_s() const { return kLongestBesideKernels_s; }

SortedJson HostCollectives::sharing(ByteCount bytes, double alone_s) {
  const double budget = rank_.job.budget_s * kShareOfKernels;
  const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
  BusyCore core;
  core.measure_alone(kShortestBaseline_s);  // warm-up
  std::vector<double> shares, stretches;
  const double begin = now_s();
  for (bool more = true; more;) {
    // Anew before every sample: the machine's speed drifts.
    core.measure_alone(std::clamp(alone_s, kShortestBaseline_s, kLongestBaseline_s));
    if (members_ != nullptr) {
      const Moved moved = move(count, &core);
      stretches.push_back(moved.seconds / alone_s);
      shares.push_back(moved.lost_s / alone_s);
    }
    const auto samples = static_cast<std::int64_t>(stretches.size());
    const bool wanted =
        members_ != nullptr && (samples < kFewestBesideKernels || now_s() - begin < budget);
    more = on_any_rank_beside(core, wanted);
  }
  if (members_ == nullptr) return SortedJson::object();
  float share[] = {static_cast<float>(median(shares))};
  members_->all_reduce(share, Reduction::kSum);
  const double mean = static_cast<double>(share[0]) / members_->size();
  return {{"cpu_share", std::clamp(mean, kLeastShare, 1.0)},
          {"stretch", std::clamp(median(stretches), 1.0, kMostStretch)}};
}

// on_any_rank() while this rank goes on computing: also those that take no part in a transfer load
// the machine's cores.
bool HostCollectives::on_any_rank_beside(BusyCore& core, bool here) {
  rank_.report.heartbeat();
  float flag[] = {here ? 1.0F : 0.0F};
  const auto request = rank_.world.start_all_reduce(flag, Reduction::kMaximum);
  while (!request->test()) core.run();
  return flag[0] > 0;
}

}  // namespace stepcast
