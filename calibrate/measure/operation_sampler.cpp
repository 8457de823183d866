// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/operation_sampler.h"

#include <algorithm>

#include "operation/signature.h"

namespace stepcast {

OperationSampler::OperationSampler(const MeasurementProtocol& protocol, bool processor_time,
                                   std::function<bool(const std::string&)> is_known)
    : protocol_(protocol), processor_time_(processor_time), is_known_(std::move(is_known)) {
  if (processor_time) protocol_.rejection.waiting = false;  // it is not in the time
}

void OperationSampler::begin(const Operation&) {
  begin_cpu_s_ = clock_.accounting().thread_cpu_s;
  timer_.emplace(clock_);
}

void OperationSampler::end(const Operation& operation) {
  Sample sample = timer_->stop();
  if (!runs_kernel(operation.work)) return;  // collectives are measured by themselves
  if (processor_time_) sample.seconds = clock_.accounting().thread_cpu_s - begin_cpu_s_;
  Point*& point = known_[&operation];
  if (point == nullptr) {
    const std::string key = signature(operation);
    point = &points_.try_emplace(key, Point{operation, Sampler(protocol_), is_known_(key)})
                 .first->second;
  }
  point->sampler.add(sample);
}

bool OperationSampler::enough() const { return done() == points_.size(); }

std::size_t OperationSampler::done() const {
  return static_cast<std::size_t>(std::count_if(
      points_.begin(), points_.end(), [](const auto& point) { return point.second.enough(); }));
}

}  // namespace stepcast
