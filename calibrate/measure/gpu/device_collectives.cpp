// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/device_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "core/assert.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"
#include "operation/buffer.h"

namespace stepcast {

using cuda::check;

namespace {

constexpr ByteCount kSmallest = 1 << 10;
constexpr ByteCount kStep = 4;  // from a size to the next
constexpr DataType kType = DataType::kBf16;
constexpr double kCollectiveSample_s = 2e-3;    // events tell half a microsecond
constexpr std::int64_t kMostCollectives = 100;  // fewer than a stream takes before its host waits
constexpr int kSmallCount = 64;                 // of values that ranks agree on

// All kinds that nccl-tests and profiles know.
constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast,     CollectiveKind::kSendReceive};

// Slices of whole 16 bytes on every rank, as nccl-tests rounds.
ByteCount rounded_up(ByteCount bytes, std::size_t ranks) {
  const auto unit = static_cast<ByteCount>(16 * ranks);
  return (bytes + unit - 1) / unit * unit;
}

std::int64_t largest_power_of_two_below(std::int64_t n) {
  std::int64_t out = 1;
  while (2 * out < n) out *= 2;
  return out;
}

}  // namespace

class DeviceCollectives::Buffer {
 public:
  Buffer(DeviceCommunicator& world, ByteCount bytes, const DeviceCollectiveOptions& options) {
    if (options.registered) {
      library_ = world.allocate(bytes);
      data_ = library_.get();
    } else {
      own_ = std::make_unique<cuda::DeviceMemory>(static_cast<std::size_t>(bytes));
      data_ = own_->data();
    }
    if (options.fill) options.fill(data_, bytes);
  }
  void* data() const { return data_; }

 private:
  std::shared_ptr<void> library_;
  std::unique_ptr<cuda::DeviceMemory> own_;
  void* data_ = nullptr;
};

std::vector<std::vector<int>> measured_groups(const std::vector<int>& nodes) {
  std::map<int, std::vector<int>> by_node;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    by_node[nodes[rank]].push_back(static_cast<int>(rank));
  }
  const auto count = static_cast<std::int64_t>(by_node.size());
  std::vector<std::vector<int>> out;
  const auto add = [&](std::vector<int> members) {
    if (members.size() > 1) out.push_back(std::move(members));
  };
  for (std::int64_t n = count; n > 1; n = largest_power_of_two_below(n)) {
    std::vector<int> members;
    std::int64_t taken = 0;
    for (const auto& [node, ranks] : by_node) {
      if (taken++ == n) break;
      members.insert(members.end(), ranks.begin(), ranks.end());
    }
    std::sort(members.begin(), members.end());
    add(std::move(members));
  }
  const std::vector<int>& first = by_node.begin()->second;
  for (auto n = static_cast<std::int64_t>(first.size()); n > 1; n = largest_power_of_two_below(n)) {
    add({first.begin(), first.begin() + n});
  }
  return out;
}

std::vector<int> nodes_of(DeviceCommunicator& world, const std::string& host) {
  // 44 bits of the name's hash, in two numbers that fp32 holds exactly.
  const std::size_t hash = std::hash<std::string>{}(host);
  std::vector<float> all(2 * static_cast<std::size_t>(world.size()));
  const auto own = 2 * static_cast<std::size_t>(world.rank());
  all[own] = static_cast<float>(hash & 0x3fffff);
  all[own + 1] = static_cast<float>(hash >> 22 & 0x3fffff);
  const cuda::DeviceArray<float> device(all);
  world
      .start_all_gather({device.data(), static_cast<std::int64_t>(all.size()), DataType::kFp32},
                        nullptr)
      ->wait();
  const std::vector<float> gathered = device.on_host();
  std::map<std::pair<float, float>, int> known;
  std::vector<int> out;
  for (std::size_t r = 0; r < gathered.size(); r += 2) {
    const auto node = static_cast<int>(known.size());
    out.push_back(known.try_emplace({gathered[r], gathered[r + 1]}, node).first->second);
  }
  return out;
}

DeviceCollectives::DeviceCollectives(DeviceCommunicator& world, std::vector<int> nodes,
                                     DeviceCollectiveOptions options)
    : world_(world),
      nodes_(std::move(nodes)),
      options_(std::move(options)),
      groups_(measured_groups(nodes_)),
      communicators_(groups_.size()),
      made_(groups_.size(), false) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const CollectiveKind kind : kKinds) kinds_.push_back({kind, group});
  }
  small_ = std::make_unique<Buffer>(world, kSmallCount * static_cast<ByteCount>(sizeof(float)),
                                    DeviceCollectiveOptions{});
  if (!options_.registered) make_buffers(world);
  check(cudaEventCreate(&begin_), "cudaEventCreate");
  check(cudaEventCreate(&end_), "cudaEventCreate");
}

void DeviceCollectives::make_buffers(DeviceCommunicator& group) {
  // Sizes are rounded up by the ranks of their group.
  const ByteCount bytes = options_.largest + 16 * static_cast<ByteCount>(nodes_.size());
  send_.reset();  // before others take its place
  receive_.reset();
  send_ = std::make_unique<Buffer>(group, bytes, options_);
  receive_ = std::make_unique<Buffer>(group, bytes, options_);
}

DeviceCollectives::~DeviceCollectives() {
  cudaEventDestroy(end_);
  cudaEventDestroy(begin_);
}

std::vector<CollectiveBackend::Curve> DeviceCollectives::curves() const {
  std::vector<Curve> out;
  for (const Kind& kind : kinds_) {
    Curve curve{name_of(kind.kind), {}};
    const std::size_t ranks = groups_[kind.group].size();
    for (ByteCount bytes = kSmallest; bytes <= options_.largest; bytes *= kStep) {
      const ByteCount size = rounded_up(bytes, ranks);
      if (curve.sizes.empty() || size > curve.sizes.back()) curve.sizes.push_back(size);
    }
    out.push_back(std::move(curve));
  }
  return out;
}

std::size_t DeviceCollectives::all_reduce_within_a_node() const {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const std::vector<int>& ranks = groups_[kinds_[i].group];
    const bool one_node = std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
      return nodes_[static_cast<std::size_t>(rank)] ==
             nodes_[static_cast<std::size_t>(ranks.front())];
    });
    if (one_node && kinds_[i].kind == CollectiveKind::kAllReduce) return i;
  }
  return 0;
}

CollectiveBackend::Meeting DeviceCollectives::meet(std::size_t index) {
  kind_ = kinds_[index];
  const std::vector<int>& ranks = groups_[kind_.group];
  const bool member = std::find(ranks.begin(), ranks.end(), world_.rank()) != ranks.end();
  if (!made_[kind_.group]) {
    communicators_[kind_.group] = world_.split(member ? 0 : -1);
    made_[kind_.group] = true;
    // Buffers belong to the communicator that uses them.
    if (options_.registered && member) make_buffers(*communicators_[kind_.group]);
  }
  members_ = communicators_[kind_.group].get();
  meeting_ = {};
  meeting_.takes_part = member;
  meeting_.is_first = member && members_->rank() == 0;
  for (const int rank : ranks) {
    meeting_.placement.push_back(nodes_[static_cast<std::size_t>(rank)]);
  }
  return meeting_;
}

std::string DeviceCollectives::key_of(ByteCount bytes) const {
  return fmt::format("{} {} bytes at {} of {}{}", name_of(kind_.kind), bytes,
                     json_text(SortedJson(meeting_.placement)), options_.identity,
                     options_.registered ? " registered" : "");
}

DeviceStream DeviceCollectives::stream() const { return members_->stream(); }

// Starts behind what is on the communicator's stream, which needs no host to wait for it.
void DeviceCollectives::start(ByteCount bytes) {
  const std::int64_t count = bytes / size_of(kType);
  const DeviceBuffer data{send_->data(), count, kType}, other{receive_->data(), count, kType};
  DeviceCommunicator& group = *members_;
  const DeviceStream after = group.stream();
  switch (kind_.kind) {
    case CollectiveKind::kAllReduce:
      group.start_all_reduce(data, Reduction::kSum, after);
      return;
    case CollectiveKind::kAllGather:
      group.start_all_gather(data, after);
      return;
    case CollectiveKind::kReduceScatter:
      group.start_reduce_scatter(data, after);
      return;
    case CollectiveKind::kAllToAll:
      group.start_all_to_all(data, other, after);
      return;
    case CollectiveKind::kBroadcast:
      group.start_broadcast(data, 0, after);
      return;
    case CollectiveKind::kSendReceive: {  // to the next, from the one before
      const int ranks = group.size(), next = (group.rank() + 1) % ranks,
                previous = (group.rank() + ranks - 1) % ranks;
      group.start_messages({{next, true, data}, {previous, false, other}}, after);
      return;
    }
  }
}

void DeviceCollectives::largest_of(DeviceCommunicator& group, std::vector<float>& values) {
  STEPCAST_ASSERT(values.size() <= kSmallCount, "few values");
  auto* const data = static_cast<float*>(small_->data());
  cuda::copy_to_device(data, values.data(), values.size() * sizeof(float), group.stream());
  group
      .start_all_reduce({data, static_cast<std::int64_t>(values.size()), DataType::kFp32},
                        Reduction::kMaximum, group.stream())
      ->wait();
  cuda::copy_to_host(values.data(), data, values.size() * sizeof(float), group.stream());
}

bool DeviceCollectives::on_any_rank(bool here) {
  std::vector<float> flag{here ? 1.0F : 0.0F};
  largest_of(world_, flag);
  return flag[0] > 0;
}

void DeviceCollectives::meet_up() {
  // Through a request, which finds peers that died and has a time limit.
  members_
      ->start_all_reduce({small_->data(), 1, DataType::kFp32}, Reduction::kMaximum,
                         members_->stream())
      ->wait();
}

// The time of this rank, from the moment when all have come.
double DeviceCollectives::seconds(ByteCount bytes, std::int64_t calls) {
  const auto on = static_cast<cudaStream_t>(members_->stream());
  // Requests are dropped where they are made, because the event behind all of them marks the end.
  members_->start_all_reduce({small_->data(), 1, DataType::kFp32}, Reduction::kMaximum,
                             members_->stream());
  check(cudaEventRecord(begin_, on), "cudaEventRecord");
  for (std::int64_t i = 1; i < calls; ++i) start(bytes);
  start(bytes);
  check(cudaEventRecord(end_, on), "cudaEventRecord");
  meet_up();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

void DeviceCollectives::begin_size(ByteCount bytes) {
  if (members_ == nullptr) return;
  seconds(bytes, 1);  // the first call makes connections
  std::vector<float> once{static_cast<float>(seconds(bytes, 1))};
  largest_of(*members_, once);
  calls_ = std::clamp(static_cast<std::int64_t>(std::ceil(
                          kCollectiveSample_s / std::max(static_cast<double>(once[0]), 1e-9))),
                      std::int64_t{1}, kMostCollectives);
}

Sample DeviceCollectives::sample(ByteCount bytes) {
  const double own = seconds(bytes, calls_);
  const bool throttled = options_.is_throttled && options_.is_throttled();
  std::vector<float> all{static_cast<float>(own), throttled ? 1.0F : 0.0F};
  largest_of(*members_, all);
  Sample out;
  out.seconds = static_cast<double>(all[0]);
  out.calls = calls_;
  out.disturbance.throttle_events = all[1] > 0 ? 1 : 0;
  return out;
}

SortedJson DeviceCollectives::facts_of_size() const { return SortedJson::object(); }
SortedJson DeviceCollectives::sharing(ByteCount, double) { return SortedJson::object(); }

}  // namespace stepcast
