// SPDX-License-Identifier: Apache-2.0
// The operations of one group share members, channels and counters.
//
// No message is needed to make a group: its name is built from its parent's name, the tag, the
// ranks and how many such groups there were before, which all members know.
//
// Collectives of a group use lanes in turn, one channel per lane and pair, so that those under way
// at the same time do not mix. When lanes run out the next collective waits for the lane's last one
// to end here. That cannot mix them elsewhere: both sides of a pair have then posted all messages
// of the earlier before any of the later, and channels keep order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/transport.h"

namespace stepcast {

class CollectiveOperation;
class ProgressDriver;

class RankGroup {
 public:
  // All processes of the transport's world.
  RankGroup(std::shared_ptr<ProgressDriver> progress, std::string name);
  // `processes` are those of the members, by rank.
  RankGroup(std::shared_ptr<ProgressDriver> progress, std::string name, std::vector<int> processes);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(processes_.size()); }
  int process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  const std::string& name() const { return name_; }
  ProgressDriver& progress() const { return *progress_; }
  CommCounters counters() const;

  std::shared_ptr<RankGroup> subgroup(const std::vector<int>& ranks, int tag);

  enum class Purpose { kCollective, kMessage };
  std::unique_ptr<MessageTransfer> send(std::span<const float> data, int to, Purpose purpose,
                                        std::int64_t tag);
  std::unique_ptr<MessageTransfer> receive(std::span<float> data, int from, Purpose purpose,
                                           std::int64_t tag);

  // Gives a collective its lane.
  void line_up(const std::shared_ptr<CollectiveOperation>& collective);

  // After a failure no more operations may start, because channels may hold messages that nobody
  // will take.
  void break_off(const std::exception_ptr& why);
  void check() const;

 private:
  Channel channel(int peer, Purpose purpose, std::int64_t tag) const;

  const std::shared_ptr<ProgressDriver> progress_;
  const std::string name_;
  const std::vector<int> processes_;
  const int rank_;
  const ContextId collective_context_;
  const ContextId message_context_;
  std::atomic<std::int64_t> messages_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;

  mutable std::mutex mutex_;
  // More than any program keeps under way in one group; few enough to announce each over MPI.
  static constexpr std::size_t kLanes = 64;
  std::array<std::weak_ptr<CollectiveOperation>, kLanes> last_in_lane_;
  std::uint64_t collectives_ = 0;
  std::map<std::pair<std::vector<int>, int>, int> subgroups_;
  std::exception_ptr failure_;
};

}  // namespace stepcast
