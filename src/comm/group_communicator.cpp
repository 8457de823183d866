// SPDX-License-Identifier: Apache-2.0
#include "comm/group_communicator.h"

#include <utility>

#include "comm/dissemination_barrier.h"
#include "comm/operation_request.h"
#include "comm/pairwise_all_to_all.h"
#include "comm/point_to_point.h"
#include "comm/progress_driver.h"
#include "comm/rank_group.h"
#include "comm/ring_pipeline.h"
#include "comm/ring_plan.h"
#include "core/assert.h"

namespace stepcast {
namespace {

std::int64_t count_of(std::span<const float> data) {
  return static_cast<std::int64_t>(data.size());
}

}  // namespace

GroupCommunicator::GroupCommunicator(std::shared_ptr<RankGroup> group) : group_(std::move(group)) {}

GroupCommunicator::~GroupCommunicator() = default;

int GroupCommunicator::rank() const { return group_->rank(); }

int GroupCommunicator::size() const { return group_->size(); }

CommCounters GroupCommunicator::counters() const { return group_->counters(); }

void GroupCommunicator::set_time_limit(std::chrono::milliseconds limit) {
  STEPCAST_ASSERT(limit.count() > 0, "a time limit is positive");
  group_->progress().set_time_limit(limit);
}

std::unique_ptr<Communicator> GroupCommunicator::group(const std::vector<int>& ranks, int tag) {
  return std::make_unique<GroupCommunicator>(group_->subgroup(ranks, tag));
}

Communicator::Pending GroupCommunicator::start(std::shared_ptr<CollectiveOperation> operation) {
  group_->check();
  group_->progress().add(operation);
  operation->drive();
  return std::make_unique<OperationRequest>(std::move(operation));
}

Communicator::Pending GroupCommunicator::start_collective(
    std::shared_ptr<CollectiveOperation> operation) {
  group_->check();
  group_->line_up(operation);
  return start(std::move(operation));
}

Communicator::Pending GroupCommunicator::start_all_reduce(std::span<float> data,
                                                          Reduction reduction) {
  return start_collective(std::make_shared<RingPipeline>(
      group_, "all_reduce", data, ring_all_reduce(count_of(data), size(), rank()), reduction));
}

Communicator::Pending GroupCommunicator::start_all_gather(std::span<float> data) {
  return start_collective(std::make_shared<RingPipeline>(
      group_, "all_gather", data, ring_all_gather(count_of(data), size(), rank()),
      Reduction::kSum));
}

Communicator::Pending GroupCommunicator::start_reduce_scatter(std::span<float> data) {
  return start_collective(std::make_shared<RingPipeline>(
      group_, "reduce_scatter", data, ring_reduce_scatter(count_of(data), size(), rank()),
      Reduction::kSum));
}

Communicator::Pending GroupCommunicator::start_broadcast(std::span<float> data, int root) {
  return start_collective(std::make_shared<RingPipeline>(
      group_, "broadcast", data, ring_broadcast(count_of(data), size(), rank(), root),
      Reduction::kSum));
}

Communicator::Pending GroupCommunicator::start_all_to_all(std::span<const float> send,
                                                          std::span<float> receive) {
  return start_collective(std::make_shared<PairwiseAllToAll>(group_, send, receive));
}

Communicator::Pending GroupCommunicator::start_send(std::span<const float> data, int to,
                                                    std::int64_t tag) {
  return start(std::make_shared<SendMessage>(group_, data, to, tag));
}

Communicator::Pending GroupCommunicator::start_receive(std::span<float> data, int from,
                                                       std::int64_t tag) {
  return start(std::make_shared<ReceiveMessage>(group_, data, from, tag));
}

void GroupCommunicator::barrier() {
  start_collective(std::make_shared<DisseminationBarrier>(group_))->wait();
}

}  // namespace stepcast
