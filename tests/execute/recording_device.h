// SPDX-License-Identifier: Apache-2.0
// The host as a device that writes down what it is told: operations by name, "mark", "post STREAM
// N" for the N-th transfer, and "hold N" where computing waits for it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execute/host_device.h"
#include "execute/role_runner.h"

namespace stepcast::testing {

class RecordingDevice final : public Device, public OperationObserver {
 public:
  explicit RecordingDevice(std::vector<std::string>& log) : log_(log) {}

  void begin(const Operation& operation) override { log_.emplace_back(operation.name); }
  void end(const Operation&) override {}
  void beside(const Operation&, const EventHandle&) override {}
  void begin_wait(const Operation&) override {}
  void end_wait(const Operation&) override {}

  EventHandle post(Stream stream, Transfer transfer) override {
    const std::string number = std::to_string(posted_.size());
    log_.push_back(std::string("post ") + name_of(stream) + " " + number);
    EventHandle event = host_.post(stream, std::move(transfer));
    posted_[event] = number;
    return event;
  }
  EventHandle mark() override {
    log_.emplace_back("mark");
    return host_.mark();
  }
  void hold(const EventHandle& event) override {
    log_.push_back("hold " + posted_[event]);
    host_.hold(event);
  }

  Kernels& kernels() override { return host_.kernels(); }
  void* allocate(std::size_t bytes, Stream stream) override {
    return host_.allocate(bytes, stream);
  }
  void release(void* data, std::size_t bytes) noexcept override { host_.release(data, bytes); }
  void zero(void* data, std::size_t bytes) override { host_.zero(data, bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    host_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    host_.download(to, from, bytes);
  }
  void* allocate_host(std::size_t bytes) override { return host_.allocate_host(bytes); }
  void release_host(void* data) noexcept override { host_.release_host(data); }
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction,
            DeviceStream after) override {
    host_.copy(to, from, bytes, direction, after);
  }
  EventHandle run(const std::vector<EventHandle>& waits,
                  const std::function<void()>& work) override {
    return host_.run(waits, work);
  }
  void communicate(DeviceCommunicator& group, const StartTraffic& start) override {
    host_.communicate(group, start);
  }
  Clock::time_point begin_step() override { return host_.begin_step(); }
  void wait(const std::vector<EventHandle>& events) override { host_.wait(events); }
  void stop() noexcept override { host_.stop(); }

 private:
  std::vector<std::string>& log_;
  std::map<EventHandle, std::string> posted_;
  HostDevice host_;
};

}  // namespace stepcast::testing
