// SPDX-License-Identifier: Apache-2.0
// Samples of every operation of a running program, each until its median is known.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "calibrate/protocol/protocol.h"
#include "execute/operation_observer.h"
#include "operation/operation.h"

namespace stepcast {

class OperationSampler final : public OperationObserver {
 public:
  // `processor_time`: durations are time on the processor, for ranks that share cores. `is_known`:
  // signatures that need no samples.
  OperationSampler(const MeasurementProtocol& protocol, bool processor_time,
                   std::function<bool(const std::string&)> is_known);

  void begin(const Operation& operation) override;
  void end(const Operation& operation) override;
  // Only collectives run beside, and they are measured by themselves.
  void beside(const Operation&, const EventHandle&) override {}
  void begin_wait(const Operation&) override {}
  void end_wait(const Operation&) override {}

  bool enough() const;
  std::size_t done() const;  // operations that are
  std::size_t size() const { return points_.size(); }

  struct Point {
    Operation operation;
    Sampler sampler;
    bool known;
    bool enough() const { return known || sampler.enough(); }
  };
  const std::map<std::string, Point>& points() const { return points_; }  // by signature

 private:
  MeasurementProtocol protocol_;
  bool processor_time_;
  std::function<bool(const std::string&)> is_known_;
  ThreadClock clock_;
  std::optional<SampleTimer> timer_;
  double begin_cpu_s_ = 0;
  std::map<std::string, Point> points_;
  // Operations live as long as their program: their signatures are made once.
  std::map<const Operation*, Point*> known_;
};

}  // namespace stepcast
