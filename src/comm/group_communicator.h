// SPDX-License-Identifier: Apache-2.0
// Communicator over any transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

class CollectiveOperation;
class RankGroup;
class ProgressDriver;

class GroupCommunicator final : public Communicator {
 public:
  explicit GroupCommunicator(std::shared_ptr<RankGroup> group);
  ~GroupCommunicator() override;

  int rank() const override;
  int size() const override;
  CommCounters counters() const override;
  void set_time_limit(std::chrono::milliseconds limit) override;
  std::unique_ptr<Communicator> group(const std::vector<int>& ranks, int tag) override;

  Pending start_all_reduce(std::span<float> data, Reduction reduction) override;
  Pending start_all_gather(std::span<float> data) override;
  Pending start_reduce_scatter(std::span<float> data) override;
  Pending start_broadcast(std::span<float> data, int root) override;
  Pending start_all_to_all(std::span<const float> send, std::span<float> receive) override;
  Pending start_send(std::span<const float> data, int to, std::int64_t tag) override;
  Pending start_receive(std::span<float> data, int from, std::int64_t tag) override;
  void barrier() override;

 private:
  Pending start(std::shared_ptr<CollectiveOperation> operation);
  Pending start_collective(std::shared_ptr<CollectiveOperation> operation);

  const std::shared_ptr<RankGroup> group_;
};

}  // namespace stepcast
