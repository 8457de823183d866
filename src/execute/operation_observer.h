// SPDX-License-Identifier: Apache-2.0
// A rank tells an observer of the operations that it runs, on the thread that runs them.
#pragma once

#include "execute/device.h"

namespace stepcast {

struct Operation;

// A computed operation is what is queued between `begin` and `end`. One that runs beside what is
// computed is told once, with the event that says when it ran; where computing then waits for it,
// the wait is what is queued between `begin_wait` and `end_wait`, and no computed operation's.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  virtual void begin(const Operation& operation) = 0;
  virtual void end(const Operation& operation) = 0;
  virtual void beside(const Operation& operation, const EventHandle& event) = 0;
  virtual void begin_wait(const Operation& beside) = 0;
  virtual void end_wait(const Operation& beside) = 0;
};

}  // namespace stepcast
