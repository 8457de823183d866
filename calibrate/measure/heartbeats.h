// SPDX-License-Identifier: Apache-2.0
// Reports that the rank is alive while a step takes longer than the launcher waits for a report.
#pragma once

#include "execute/operation_observer.h"
#include "launch/rank_report.h"

namespace stepcast {

struct Operation;

class Heartbeats final : public OperationObserver {
 public:
  // `next` may be null.
  Heartbeats(RankReporter& report, OperationObserver* next) : report_(report), next_(next) {}
  void begin(const Operation& operation) override {
    report_.heartbeat();
    if (next_ != nullptr) next_->begin(operation);
  }
  void end(const Operation& operation) override {
    if (next_ != nullptr) next_->end(operation);
  }
  void beside(const Operation& operation, const EventHandle& event) override {
    report_.heartbeat();
    if (next_ != nullptr) next_->beside(operation, event);
  }
  void begin_wait(const Operation& beside) override {
    if (next_ != nullptr) next_->begin_wait(beside);
  }
  void end_wait(const Operation& beside) override {
    if (next_ != nullptr) next_->end_wait(beside);
  }

 private:
  RankReporter& report_;
  OperationObserver* next_;
};

}  // namespace stepcast
