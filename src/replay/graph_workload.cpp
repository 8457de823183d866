// SPDX-License-Identifier: Apache-2.0
#include "replay/graph_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "sim/time.h"

namespace stepcast {
namespace {

using sim::MemberSpec;
using sim::TaskId;

// The engine's clock has 92 days, and transfers that share links take longer than alone.
constexpr double kLongestReplay_s = 1e6;

class Builder {
 public:
  Builder(const ExecutionGraph& graph, const GraphMeetings& meetings, GraphNetwork& network,
          const ReplayRules& rules)
      : graph_(graph), meetings_(meetings), network_(network), rules_(rules) {}

  Result<GraphWorkload> build() {
    network_.add_resources(out_.workload);
    prepare();
    for (std::int32_t n = 0; n < nodes(); ++n) {
      if (pending_[at(n)] == 0) arrive(n);
    }
    while (!queue_.empty() && errors_.empty()) {
      const std::int32_t next = queue_.top().second;
      queue_.pop();
      emit(next);
    }
    if (errors_.empty() && finished_ < nodes()) report_cycle();
    if (errors_.empty() && latest_ > kLongestReplay_s) {
      errors_.push_back({ErrorCode::kBadValue, fmt::format("would take {:g} s", latest_),
                         graph_.ranks.front().file, "",
                         fmt::format("at most {:g} s", kLongestReplay_s)});
    }
    if (!errors_.empty()) return failure(std::move(errors_));
    return std::move(out_);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int32_t nodes() const { return static_cast<std::int32_t>(meetings_.rank_of.size()); }
  const RankGraph& rank_of(std::int32_t n) const {
    return graph_.ranks[at(meetings_.rank_of[at(n)])];
  }
  const GraphNode& node(std::int32_t n) const { return rank_of(n).nodes[at(meetings_.place(n))]; }
  std::span<const GraphDependency> dependencies(std::int32_t n) const {
    return rank_of(n).dependencies_of(node(n));
  }
  // The node that a dependency of `n` names, among those of all ranks.
  std::int32_t number(std::int32_t n, const GraphDependency& dependency) const {
    return meetings_.first_node[at(meetings_.rank_of[at(n)])] + dependency.node;
  }
  const Meeting* meeting(std::int32_t n) const {
    const std::int32_t m = meetings_.meeting_of[at(n)];
    return m == kNowhere ? nullptr : &meetings_.meetings[at(m)];
  }

  void prepare() {
    const auto count = at(nodes());
    pending_.resize(count);
    ready_.assign(count, 0);
    done_.assign(count, false);
    first_dependent_.assign(count + 1, 0);
    out_.work_of.resize(count);
    out_.end_of.resize(count);
    out_.previous.assign(count, kNowhere);
    out_.alone.resize(meetings_.meetings.size());
    arrived_.assign(meetings_.meetings.size(), 0);
    sent_.resize(meetings_.meetings.size());
    for (std::int32_t n = 0; n < nodes(); ++n) {
      pending_[at(n)] = node(n).dependencies;
      for (const GraphDependency& one : dependencies(n)) ++first_dependent_[at(number(n, one)) + 1];
    }
    for (std::size_t i = 0; i < count; ++i) first_dependent_[i + 1] += first_dependent_[i];
    dependents_.resize(static_cast<std::size_t>(first_dependent_.back()));
    std::vector<std::int32_t> next(first_dependent_.begin(), first_dependent_.end() - 1);
    for (std::int32_t n = 0; n < nodes(); ++n) {
      for (const GraphDependency& one : dependencies(n)) {
        dependents_[at(next[at(number(n, one))]++)] = n;
      }
    }
    out_.workload.reserve(count, count, dependents_.size());
  }

  // Whether the send's message waits for the receive.
  bool is_rendezvous(const Meeting& message) const {
    return graph_.sends == SendRule::kEager && message.bytes > graph_.eager_bytes;
  }

  void push(std::int32_t n, double time) { queue_.emplace(time, n); }

  // All that the node itself waits for has been emitted.
  void arrive(std::int32_t n) {
    const Meeting* meets = meeting(n);
    if (meets == nullptr) return push(n, ready_[at(n)]);
    const auto m = at(meetings_.meeting_of[at(n)]);
    ++arrived_[m];
    const auto members = meetings_.members_of(*meets);
    if (meets->is_message() && !is_rendezvous(*meets)) {
      // The message leaves without its receive, which then waits for it.
      if (n == members[0]) return push(n, ready_[at(n)]);
      if (done_[at(members[0])])
        push(n, std::max(ready_[at(n)], message_end_[meetings_.meeting_of[at(n)]]));
      return;
    }
    if (arrived_[m] < meets->count) return;
    double last = 0;
    for (const std::int32_t member : members) last = std::max(last, ready_[at(member)]);
    push(members[0], last);
  }

  void finish(std::int32_t n, double end) {
    done_[at(n)] = true;
    ++finished_;
    latest_ = std::max(latest_, end);
    for (std::int32_t i = first_dependent_[at(n)]; i < first_dependent_[at(n) + 1]; ++i) {
      const std::int32_t after = dependents_[at(i)];
      ready_[at(after)] = std::max(ready_[at(after)], end);
      if (--pending_[at(after)] == 0) arrive(after);
    }
  }

  void emit(std::int32_t n) {
    const Meeting* meets = meeting(n);
    if (meets == nullptr) return emit_alone(n);
    if (!meets->is_message()) return emit_collective(*meets);
    if (is_rendezvous(*meets)) return emit_both_ends(*meets);
    if (n == meetings_.members_of(*meets)[0]) return emit_send(n, *meets);
    emit_receive(n);
  }

  Errors& fail(std::int32_t n, std::string message, std::string hint) {
    errors_.push_back(
        {ErrorCode::kMissingKey,
         graph_.describe(meetings_.rank_of[at(n)], meetings_.place(n)) + std::move(message),
         rank_of(n).file, "", std::move(hint)});
    return errors_;
  }

  Seconds duration(std::int32_t n) {
    const GraphNode& one = node(n);
    if (one.kind == NodeKind::kNothing) return Seconds(0);
    const bool by_model = rules_.compute == TimeSource::kModel && one.kind == NodeKind::kCompute;
    if (!by_model) return one.duration / rules_.compute_speed;
    if (one.flops <= 0 && one.bytes <= 0) {
      if (one.duration.value() > 0) ++out_.without_work;
      return one.duration / rules_.compute_speed;
    }
    return network_.compute(one.flops, one.bytes) / rules_.compute_speed;
  }

  enum class Lane : std::uint8_t { kCompute, kHost, kMemory, kGroup };

  sim::StreamId stream(std::int32_t rank, Lane lane, std::int32_t which) {
    const auto [known, fresh] = streams_.try_emplace({rank, lane, which});
    if (fresh) known->second = {out_.workload.add_stream(), kNowhere};
    return known->second.first;
  }
  // Remembers the node as the last one of the stream.
  void follow(std::int32_t n, std::int32_t rank, Lane lane, std::int32_t which) {
    auto& last = streams_.find({rank, lane, which})->second.second;
    out_.previous[at(n)] = last;
    last = n;
  }

  // Waits of member `member` of a task for what the node depends on. The start of another task is
  // its issuer; each further one gets a task of its own that ends with it.
  TaskId issuer_of(std::int32_t n) {
    for (const GraphDependency& one : dependencies(n)) {
      const TaskId task = out_.work_of[at(number(n, one))];
      if (one.on_start && task.valid()) return task;
    }
    return {};
  }
  void depend(std::int32_t n, TaskId task, std::int32_t member) {
    bool issued = false;
    for (const GraphDependency& one : dependencies(n)) {
      const std::int32_t before = number(n, one);
      if (!one.on_start) {
        if (out_.end_of[at(before)].valid()) {
          out_.workload.depend(out_.end_of[at(before)], task, member);
        }
        continue;
      }
      const TaskId started = out_.work_of[at(before)];
      if (!started.valid()) continue;
      if (issued) out_.workload.depend(add_instant(started), task, member);
      issued = true;
    }
  }

  // A task without length, on a stream of its own.
  TaskId add_instant(TaskId issuer) {
    const MemberSpec member{out_.workload.add_stream(), issuer, {}, {}};
    sim::TaskSpec spec;
    spec.members = {&member, 1};
    return out_.workload.add_task(spec);
  }

  // The end of a node that takes no time itself: with all that it depends on.
  TaskId add_join(std::int32_t n) {
    const bool waits = std::ranges::any_of(dependencies(n), [&](const GraphDependency& one) {
      const auto before = at(number(n, one));
      return one.on_start ? out_.work_of[before].valid() : out_.end_of[before].valid();
    });
    if (!waits) return {};
    const TaskId task = add_instant(issuer_of(n));
    depend(n, task, 0);
    return task;
  }

  void emit_alone(std::int32_t n) {
    const GraphNode& one = node(n);
    const Seconds time = duration(n);
    if (time.value() <= 0) {
      out_.end_of[at(n)] = out_.work_of[at(n)] = add_join(n);
      return finish(n, ready_[at(n)]);
    }
    const std::int32_t rank = meetings_.rank_of[at(n)];
    const Lane lane = one.kind == NodeKind::kHost     ? Lane::kHost
                      : one.kind == NodeKind::kMemory ? Lane::kMemory
                                                      : Lane::kCompute;
    const MemberSpec member{stream(rank, lane, one.lane), issuer_of(n), {}, {}};
    follow(n, rank, lane, one.lane);
    sim::TaskSpec spec;
    spec.members = {&member, 1};
    spec.latency = sim::duration(time);
    const TaskId task = out_.workload.add_task(spec);
    depend(n, task, 0);
    out_.end_of[at(n)] = out_.work_of[at(n)] = task;
    finish(n, ready_[at(n)] + time.value());
  }

  // The longest duration that the file states for a member.
  GraphTransfer stated(std::span<const std::int32_t> members) {
    GraphTransfer out;
    for (const std::int32_t n : members) out.latency = std::max(out.latency, node(n).duration);
    if (out.latency.value() <= 0) {
      fail(members[0], " states no duration", "--communication model asks the cluster");
    }
    return out;
  }

  const GraphTransfer& collective(const Meeting& meets) {
    const GraphNode& first = node(meetings_.members_of(meets)[0]);
    const auto key = std::tuple(kind_of(first.collective), meets.bytes, first.group);
    const auto [known, fresh] = collectives_.try_emplace(key);
    if (fresh) {
      known->second = network_.collective(kind_of(first.collective), meets.bytes,
                                          graph_.groups[at(first.group)]);
    }
    return known->second;
  }

  const GraphTransfer& message(const Meeting& meets) {
    const auto members = meetings_.members_of(meets);
    const std::int32_t from = meetings_.rank_of[at(members[0])];
    const std::int32_t to = meetings_.rank_of[at(members[1])];
    const auto [known, fresh] = messages_.try_emplace({from, to, meets.bytes});
    if (fresh) known->second = network_.message(meets.bytes, from, to);
    return known->second;
  }

  // A task for it, with `seats` as members.
  TaskId add_transfer(const Meeting& meets, std::span<const MemberSpec> seats) {
    if (rules_.communication == TimeSource::kFile) last_ = stated(meetings_.members_of(meets));
    const GraphTransfer& price = rules_.communication == TimeSource::kFile ? last_
                                 : meets.is_message()                      ? message(meets)
                                                                           : collective(meets);
    out_.alone[static_cast<std::size_t>(&meets - meetings_.meetings.data())] = price.time();
    sim::TaskSpec spec;
    spec.members = seats;
    spec.latency = sim::duration(price.latency);
    spec.work = price.work;
    spec.rate_bound = price.rate_bound;
    spec.share = price.share;
    if (rules_.contention) spec.uses = price.uses;
    return out_.workload.add_task(spec);
  }
  double alone(const Meeting& meets) const {
    return out_.alone[static_cast<std::size_t>(&meets - meetings_.meetings.data())].value();
  }

  void emit_collective(const Meeting& meets) {
    const auto members = meetings_.members_of(meets);
    seats_.clear();
    double start = 0;
    for (const std::int32_t n : members) {
      const std::int32_t rank = meetings_.rank_of[at(n)];
      seats_.push_back({stream(rank, Lane::kGroup, node(n).group), issuer_of(n), {}, {}});
      follow(n, rank, Lane::kGroup, node(n).group);
      start = std::max(start, ready_[at(n)]);
    }
    const TaskId task = add_transfer(meets, seats_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      depend(members[i], task, static_cast<std::int32_t>(i));
      out_.end_of[at(members[i])] = out_.work_of[at(members[i])] = task;
    }
    for (const std::int32_t n : members) finish(n, start + alone(meets));
  }

  // Messages of one channel keep their order.
  sim::StreamId channel_stream(std::int32_t channel, bool receives) {
    return stream(receives ? -2 : -1, Lane::kGroup, channel);
  }

  void emit_both_ends(const Meeting& meets) {
    const auto members = meetings_.members_of(meets);
    const MemberSpec seats[] = {
        {channel_stream(meets.channel, false), issuer_of(members[0]), {}, {}},
        {channel_stream(meets.channel, true), issuer_of(members[1]), {}, {}}};
    const TaskId task = add_transfer(meets, seats);
    const double start = std::max(ready_[at(members[0])], ready_[at(members[1])]);
    for (std::int32_t i = 0; i < 2; ++i) {
      depend(members[at(i)], task, i);
      out_.end_of[at(members[at(i)])] = out_.work_of[at(members[at(i)])] = task;
    }
    for (const std::int32_t n : members) finish(n, start + alone(meets));
  }

  void emit_send(std::int32_t n, const Meeting& meets) {
    const MemberSpec seat{channel_stream(meets.channel, false), issuer_of(n), {}, {}};
    const TaskId task = add_transfer(meets, {&seat, 1});
    depend(n, task, 0);
    const double arrives = ready_[at(n)] + alone(meets);
    out_.work_of[at(n)] = task;
    const bool ends_at_once = graph_.sends == SendRule::kEager;
    out_.end_of[at(n)] = ends_at_once ? add_join(n) : task;
    const std::int32_t m = meetings_.meeting_of[at(n)];
    sent_[at(m)] = task;
    message_end_[m] = arrives;
    finish(n, ends_at_once ? ready_[at(n)] : arrives);
    const std::int32_t receive = meetings_.members_of(meets)[1];
    if (pending_[at(receive)] == 0 && !done_[at(receive)]) {
      push(receive, std::max(ready_[at(receive)], arrives));
    }
  }

  void emit_receive(std::int32_t n) {
    if (done_[at(n)]) return;
    const std::int32_t m = meetings_.meeting_of[at(n)];
    out_.work_of[at(n)] = sent_[at(m)];
    TaskId end = sent_[at(m)];
    if (const TaskId join = add_join(n); join.valid()) {
      out_.workload.depend(sent_[at(m)], join, 0);
      end = join;
    }
    out_.end_of[at(n)] = end;
    finish(n, std::max(ready_[at(n)], message_end_[m]));
  }

  // Who is not done waits for somebody who is not done.
  std::int32_t awaited_by(std::int32_t n) const {
    for (const GraphDependency& one : dependencies(n)) {
      if (!done_[at(number(n, one))]) return number(n, one);
    }
    for (const std::int32_t member : meetings_.members_of(*meeting(n))) {
      if (member != n && !done_[at(member)] && pending_[at(member)] > 0) return member;
    }
    return n;
  }

  void report_cycle() {
    std::int32_t n = 0;
    while (done_[at(n)]) ++n;
    std::unordered_map<std::int32_t, std::size_t> seen;
    std::vector<std::int32_t> way;
    while (seen.try_emplace(n, way.size()).second) {
      way.push_back(n);
      n = awaited_by(n);
    }
    constexpr std::size_t kShown = 6;
    std::string words;
    const std::size_t begin = seen[n];
    for (std::size_t i = begin; i < way.size() && i - begin < kShown; ++i) {
      words +=
          graph_.describe(meetings_.rank_of[at(way[i])], meetings_.place(way[i])) + " waits for ";
    }
    const std::size_t length = way.size() - begin;
    words += length > kShown
                 ? fmt::format("{} more, and the last of them for the first", length - kShown)
                 : "the first";
    if (length == 1)
      words = graph_.describe(meetings_.rank_of[at(n)], meetings_.place(n)) + " waits for itself";
    errors_.push_back(
        {ErrorCode::kIllegal, words, rank_of(n).file, "", "dependencies without a circle"});
  }

  const ExecutionGraph& graph_;
  const GraphMeetings& meetings_;
  GraphNetwork& network_;
  const ReplayRules& rules_;
  GraphWorkload out_;
  Errors errors_;
  std::vector<std::int32_t> pending_;          // by node: dependencies that are not emitted
  std::vector<double> ready_;                  // by node, s: what it waits for has ended
  std::vector<bool> done_;                     // by node
  std::vector<std::int32_t> first_dependent_;  // by node, and one past the end
  std::vector<std::int32_t> dependents_;
  std::vector<std::int32_t> arrived_;                     // by meeting: members that have come
  std::vector<TaskId> sent_;                              // by meeting
  std::unordered_map<std::int32_t, double> message_end_;  // by meeting, s
  using Next = std::pair<double, std::int32_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue_;
  std::int32_t finished_ = 0;
  double latest_ = 0;
  std::map<std::tuple<std::int32_t, Lane, std::int32_t>, std::pair<sim::StreamId, std::int32_t>>
      streams_;
  std::map<std::tuple<CollectiveKind, double, std::int32_t>, GraphTransfer> collectives_;
  std::map<std::tuple<std::int32_t, std::int32_t, double>, GraphTransfer> messages_;
  GraphTransfer last_;
  std::vector<MemberSpec> seats_;
};

}  // namespace

Result<GraphWorkload> build_workload(const ExecutionGraph& graph, const GraphMeetings& meetings,
                                     GraphNetwork& network, const ReplayRules& rules) {
  return Builder(graph, meetings, network, rules).build();
}

}  // namespace stepcast
