// SPDX-License-Identifier: Apache-2.0
#include "host_view.h"

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace stepcast {
namespace {

class Array {
 public:
  explicit Array(std::size_t count) : count_(count) { cudaMalloc(&data_, count * sizeof(float)); }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  DeviceBuffer buffer() const {
    return {data_, static_cast<std::int64_t>(count_), DataType::kFp32};
  }
  void from(const float* host, cudaStream_t stream) {
    cudaMemcpyAsync(data_, host, bytes(), cudaMemcpyHostToDevice, stream);
  }
  void to(float* host, cudaStream_t stream) const {
    cudaMemcpyAsync(host, data_, bytes(), cudaMemcpyDeviceToHost, stream);
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(float); }
  std::size_t count_;
  void* data_ = nullptr;
};

struct Shared {
  std::unique_ptr<DeviceCommunicator> group;
  cudaStream_t stream = nullptr;

  explicit Shared(std::unique_ptr<DeviceCommunicator> of) : group(std::move(of)) {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  ~Shared() {
    group.reset();  // what the stream still waits for ends with it
    cudaStreamDestroy(stream);
  }
};

// The operation, and behind it the copy of its result.
class ViewedRequest final : public Request {
 public:
  ViewedRequest(std::shared_ptr<Shared> shared, std::unique_ptr<Request> operation,
                std::vector<std::shared_ptr<Array>> arrays)
      : shared_(std::move(shared)), operation_(std::move(operation)), arrays_(std::move(arrays)) {
    cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming);
    cudaEventRecord(copied_, shared_->stream);
  }
  ~ViewedRequest() override { cudaEventDestroy(copied_); }
  bool test() override { return operation_->test() && cudaEventQuery(copied_) == cudaSuccess; }
  void wait() override {
    operation_->wait();
    cudaEventSynchronize(copied_);
  }
  std::int64_t moves() const override { return operation_->moves(); }

 private:
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Request> operation_;
  std::vector<std::shared_ptr<Array>> arrays_;
  cudaEvent_t copied_ = nullptr;
};

class HostView final : public Communicator {
 public:
  explicit HostView(std::unique_ptr<DeviceCommunicator> group)
      : shared_(std::make_shared<Shared>(std::move(group))) {}

  int rank() const override { return shared_->group->rank(); }
  int size() const override { return shared_->group->size(); }
  CommCounters counters() const override { return {}; }
  void set_time_limit(std::chrono::milliseconds limit) override {
    shared_->group->set_time_limit(limit);
  }
  std::unique_ptr<Communicator> group(const std::vector<int>& ranks, int) override {
    return host_view(shared_->group->split(ranks.front()));
  }

  Pending start_all_reduce(std::span<float> data, Reduction reduction) override {
    return in_place(data, [&](DeviceBuffer own) {
      return shared_->group->start_all_reduce(own, reduction, shared_->stream);
    });
  }
  Pending start_all_gather(std::span<float> data) override {
    return in_place(data, [&](DeviceBuffer own) {
      return shared_->group->start_all_gather(own, shared_->stream);
    });
  }
  Pending start_reduce_scatter(std::span<float> data) override {
    return in_place(data, [&](DeviceBuffer own) {
      return shared_->group->start_reduce_scatter(own, shared_->stream);
    });
  }
  Pending start_broadcast(std::span<float> data, int root) override {
    return in_place(data, [&](DeviceBuffer own) {
      return shared_->group->start_broadcast(own, root, shared_->stream);
    });
  }
  Pending start_all_to_all(std::span<const float> send, std::span<float> receive) override {
    const auto from = std::make_shared<Array>(send.size());
    const auto to = std::make_shared<Array>(receive.size());
    from->from(send.data(), shared_->stream);
    auto operation =
        shared_->group->start_all_to_all(from->buffer(), to->buffer(), shared_->stream);
    shared_->group->hold(shared_->stream);
    to->to(receive.data(), shared_->stream);
    return std::make_unique<ViewedRequest>(shared_, std::move(operation), std::vector{from, to});
  }
  Pending start_send(std::span<const float>, int, std::int64_t) override { throw no_tags(); }
  Pending start_receive(std::span<float>, int, std::int64_t) override { throw no_tags(); }
  void barrier() override {
    float nothing = 0;
    all_reduce({&nothing, 1});
  }

 private:
  static std::logic_error no_tags() {
    return std::logic_error("messages between GPUs are not told apart by tags");
  }
  template <typename Start>
  Pending in_place(std::span<float> data, Start start) {
    const auto own = std::make_shared<Array>(data.size());
    own->from(data.data(), shared_->stream);
    auto operation = start(own->buffer());
    shared_->group->hold(shared_->stream);
    own->to(data.data(), shared_->stream);
    return std::make_unique<ViewedRequest>(shared_, std::move(operation), std::vector{own});
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Communicator> host_view(std::unique_ptr<DeviceCommunicator> group) {
  return std::make_unique<HostView>(std::move(group));
}

}  // namespace stepcast
