// SPDX-License-Identifier: Apache-2.0
#include "comm/host_group.h"

#include <cstddef>

#include "core/assert.h"

namespace stepcast {
namespace {

std::span<float> floats(DeviceBuffer buffer) {
  STEPCAST_ASSERT(buffer.type == DataType::kFp32, "groups of hosts move fp32");
  return {static_cast<float*>(buffer.data), static_cast<std::size_t>(buffer.count)};
}

// Slices of fp8, which are moved as they are, in words of four.
std::span<float> moved(DeviceBuffer buffer, int members) {
  if (buffer.type != DataType::kFp8) return floats(buffer);
  constexpr std::int64_t kWord = sizeof(float);
  STEPCAST_ASSERT(buffer.count % (kWord * members) == 0, "copies in fp8 divide into words");
  return {static_cast<float*>(buffer.data), static_cast<std::size_t>(buffer.count / kWord)};
}

// One request that stands for several.
class Requests final : public Request {
 public:
  explicit Requests(std::vector<std::unique_ptr<Request>> all) : all_(std::move(all)) {}
  bool test() override {
    bool ended = true;
    for (const auto& one : all_) ended = one->test() && ended;
    return ended;
  }
  void wait() override {
    for (const auto& one : all_) one->wait();
  }
  std::int64_t moves() const override {
    std::int64_t sum = 0;
    for (const auto& one : all_) sum += one->moves();
    return sum;
  }

 private:
  std::vector<std::unique_ptr<Request>> all_;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> HostGroup::split(int color) {
  std::vector<float> colors(static_cast<std::size_t>(size()));  // exact up to 2^24
  const auto own = static_cast<std::size_t>(rank());
  colors[own] = static_cast<float>(color);
  group_->all_gather(colors);
  ++splits_;
  if (color < 0) return nullptr;
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (colors[static_cast<std::size_t>(r)] == colors[own]) members.push_back(r);
  }
  return std::unique_ptr<DeviceCommunicator>(new HostGroup(group_->group(members, splits_)));
}

std::shared_ptr<void> HostGroup::allocate(std::int64_t bytes) {
  return std::make_shared<std::byte[]>(static_cast<std::size_t>(bytes));
}

HostGroup::Pending HostGroup::start_all_reduce(DeviceBuffer data, Reduction reduction,
                                               DeviceStream) {
  return group_->start_all_reduce(floats(data), reduction);
}
HostGroup::Pending HostGroup::start_all_gather(DeviceBuffer data, DeviceStream) {
  return group_->start_all_gather(moved(data, size()));
}
HostGroup::Pending HostGroup::start_reduce_scatter(DeviceBuffer data, DeviceStream) {
  return group_->start_reduce_scatter(floats(data));
}
HostGroup::Pending HostGroup::start_broadcast(DeviceBuffer data, int root, DeviceStream) {
  return group_->start_broadcast(floats(data), root);
}
HostGroup::Pending HostGroup::start_all_to_all(DeviceBuffer send, DeviceBuffer receive,
                                               DeviceStream) {
  return group_->start_all_to_all(floats(send), floats(receive));
}

HostGroup::Pending HostGroup::start_messages(const std::vector<Message>& messages, DeviceStream) {
  std::vector<Pending> all;
  for (const Message& message : messages) {
    all.push_back(message.sends
                      ? group_->start_send(floats(message.data), message.peer, message.tag)
                      : group_->start_receive(floats(message.data), message.peer, message.tag));
  }
  return std::make_unique<Requests>(std::move(all));
}

}  // namespace stepcast
