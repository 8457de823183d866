// SPDX-License-Identifier: Apache-2.0
// A group of host memory under the interface of devices: fp32, and gathers of fp8. `after` has
// always run.
#pragma once

#include "comm/device_communicator.h"

namespace stepcast {

class HostGroup final : public DeviceCommunicator {
 public:
  explicit HostGroup(Communicator& world) : group_(&world) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void set_time_limit(std::chrono::milliseconds limit) override { group_->set_time_limit(limit); }
  std::unique_ptr<DeviceCommunicator> split(int color) override;
  std::shared_ptr<void> register_memory(void*, std::int64_t) override { return nullptr; }

  std::shared_ptr<void> allocate(std::int64_t bytes) override;
  DeviceStream stream() const override { return nullptr; }

  Pending start_all_reduce(DeviceBuffer data, Reduction reduction, DeviceStream) override;
  Pending start_all_gather(DeviceBuffer data, DeviceStream) override;
  Pending start_reduce_scatter(DeviceBuffer data, DeviceStream) override;
  Pending start_broadcast(DeviceBuffer data, int root, DeviceStream) override;
  Pending start_all_to_all(DeviceBuffer send, DeviceBuffer receive, DeviceStream) override;
  Pending start_messages(const std::vector<Message>& messages, DeviceStream) override;
  void hold(DeviceStream) override {}

 private:
  explicit HostGroup(std::unique_ptr<Communicator> group)
      : owned_(std::move(group)), group_(owned_.get()) {}

  std::unique_ptr<Communicator> owned_;
  Communicator* group_;
  int splits_ = 0;
};

}  // namespace stepcast
