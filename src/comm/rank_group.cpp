// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

#include "comm/collective_operation.h"
#include "comm/progress_driver.h"
#include "core/assert.h"

namespace stepcast {
namespace {

std::vector<int> all_processes(const Transport& transport) {
  std::vector<int> processes(static_cast<std::size_t>(transport.processes()));
  std::iota(processes.begin(), processes.end(), 0);
  return processes;
}

int rank_in(const std::vector<int>& processes, int process) {
  const auto found = std::find(processes.begin(), processes.end(), process);
  STEPCAST_ASSERT(found != processes.end(), "a group is made by its members only");
  return static_cast<int>(found - processes.begin());
}

}  // namespace

RankGroup::RankGroup(std::shared_ptr<ProgressDriver> progress, std::string name)
    : RankGroup(progress, std::move(name), all_processes(progress->transport())) {}

RankGroup::RankGroup(std::shared_ptr<ProgressDriver> progress, std::string name,
                     std::vector<int> processes)
    : progress_(std::move(progress)),
      name_(std::move(name)),
      processes_(std::move(processes)),
      rank_(rank_in(processes_, progress_->transport().process())),
      collective_context_(progress_->transport().context(name_ + " collectives")),
      message_context_(progress_->transport().context(name_ + " messages")) {}

CommCounters RankGroup::counters() const { return {messages_.load(), bytes_.load()}; }

std::shared_ptr<RankGroup> RankGroup::subgroup(const std::vector<int>& ranks, int tag) {
  STEPCAST_ASSERT(std::set<int>(ranks.begin(), ranks.end()).size() == ranks.size(),
                  "a group has each rank once");
  std::vector<int> processes;
  for (const int rank : ranks) {
    STEPCAST_ASSERT(rank >= 0 && rank < size(), "members of a group are ranks of its parent");
    processes.push_back(process(rank));
  }
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = subgroups_[{ranks, tag}]++;
  }
  std::string name = fmt::format("{}/{}[{}]", name_, tag, fmt::join(ranks, ","));
  if (number > 0) name += fmt::format("#{}", number);
  return std::make_shared<RankGroup>(progress_, std::move(name), std::move(processes));
}

Channel RankGroup::channel(int peer, Purpose purpose, std::int64_t tag) const {
  STEPCAST_ASSERT(peer >= 0 && peer < size(), "the other end is a rank of the group");
  return {.peer = process(peer),
          .context = purpose == Purpose::kCollective ? collective_context_ : message_context_,
          .tag = tag};
}

std::unique_ptr<MessageTransfer> RankGroup::send(std::span<const float> data, int to,
                                                 Purpose purpose, std::int64_t tag) {
  messages_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(static_cast<std::int64_t>(data.size_bytes()), std::memory_order_relaxed);
  return progress_->transport().start_send(std::as_bytes(data), channel(to, purpose, tag));
}

std::unique_ptr<MessageTransfer> RankGroup::receive(std::span<float> data, int from,
                                                    Purpose purpose, std::int64_t tag) {
  return progress_->transport().start_receive(std::as_writable_bytes(data),
                                              channel(from, purpose, tag));
}

void RankGroup::line_up(const std::shared_ptr<CollectiveOperation>& collective) {
  const std::lock_guard lock(mutex_);
  const std::size_t lane = collectives_++ % kLanes;
  collective->take_lane(static_cast<std::int64_t>(lane), last_in_lane_[lane].lock());
  last_in_lane_[lane] = collective;
}

void RankGroup::break_off(const std::exception_ptr& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = why;
}

void RankGroup::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace stepcast
