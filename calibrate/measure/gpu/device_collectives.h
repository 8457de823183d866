// SPDX-License-Identifier: Apache-2.0
// Communication between GPUs, as nccl-tests measures it (doc/PERFORMANCE.md): one group at work at
// a time, calls that follow each other on the communicator's stream, between two events there. The
// operations of a group begin together, behind a small all-reduce on that stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/measure/collective_backend.h"
#include "comm/device_communicator.h"
#include "core/json_fwd.h"
#include "cost/collective_model.h"
#include "operation/collective_kind.h"

namespace stepcast {

struct DeviceCollectiveOptions {
  ByteCount largest = ByteCount{1} << 30;
  bool registered = false;  // buffers of the library's own (DeviceCommunicator::allocate)
  std::string identity{};   // of the machine's devices, in journals
  std::function<bool()> is_throttled{};             // now; empty: never
  std::function<void(void*, std::int64_t)> fill{};  // a buffer with data; empty: left as it is
};

// Groups that are measured, the largest first: whole nodes, from one to all of them, and within the
// first node by powers of two. `nodes`: of each rank.
std::vector<std::vector<int>> measured_groups(const std::vector<int>& nodes);

// The node of each rank, by the names of their machines. Called by all ranks.
std::vector<int> nodes_of(DeviceCommunicator& world, const std::string& host);

class DeviceCollectives final : public CollectiveBackend {
 public:
  DeviceCollectives(DeviceCommunicator& world, std::vector<int> nodes,
                    DeviceCollectiveOptions options);
  ~DeviceCollectives() override;

  std::vector<Curve> curves() const override;
  Meeting meet(std::size_t curve) override;
  std::string key_of(ByteCount bytes) const override;
  void begin_size(ByteCount bytes) override;
  Sample sample(ByteCount bytes) override;
  SortedJson facts_of_size() const override;
  bool has_sharing() const override { return false; }
  double longest_sharing_s() const override { return 0; }
  SortedJson sharing(ByteCount, double) override;
  bool on_any_rank(bool here) override;

  std::size_t all_reduce_within_a_node() const;  // curve of the largest such group, else of any

  // One call of the meeting's operation, queued on its communicator's stream; by members alone.
  void start(ByteCount bytes);
  DeviceStream stream() const;  // of the meeting's communicator
  void meet_up();               // until all members have come
  void largest_of_members(std::vector<float>& values) { largest_of(*members_, values); }

 private:
  struct Kind {
    CollectiveKind kind;
    std::size_t group;
  };
  class Buffer;
  void make_buffers(DeviceCommunicator& group);
  // The largest of each value over the members of `group`.
  void largest_of(DeviceCommunicator& group, std::vector<float>& values);
  double seconds(ByteCount bytes, std::int64_t calls);

  DeviceCommunicator& world_;
  const std::vector<int> nodes_;
  const DeviceCollectiveOptions options_;
  std::vector<std::vector<int>> groups_;
  std::vector<Kind> kinds_;
  std::vector<std::unique_ptr<DeviceCommunicator>> communicators_;  // by group; null: not in it
  std::vector<bool> made_;                                          // by group
  std::unique_ptr<Buffer> small_, send_, receive_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;

  // The present meeting:
  Kind kind_{};
  DeviceCommunicator* members_ = nullptr;
  Meeting meeting_;
  std::int64_t calls_ = 1;
};

}  // namespace stepcast
