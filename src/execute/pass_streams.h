// SPDX-License-Identifier: Apache-2.0
// The streams of one pass over a block while the host issues it: transfers beside what is computed,
// the events between them (Operation::after), and their common end. A pass that computes only needs
// nothing of this.
#pragma once

#include <array>
#include <vector>

#include "execute/operation_observer.h"
#include "operation/operation.h"

namespace stepcast {

class PassStreams {
 public:
  // The pass begins behind what has been queued for computing so far. `observer` is told of what
  // runs beside and of the waits for it; null: nobody is.
  PassStreams(Device& device, const std::vector<Operation>& pass, OperationObserver* observer);

  // Work computed from now on runs behind all that operation i, on the computing stream, waits for.
  void before(std::size_t i);
  // Operation i has been queued for computing.
  void behind(std::size_t i);
  // Operation i runs beside what is computed.
  void post(std::size_t i, Transfer transfer);
  // Work computed from now on runs behind all of the pass.
  void join();

 private:
  void hold(std::int32_t beside);

  Device& device_;
  const std::vector<Operation>& pass_;
  OperationObserver* observer_;
  // They are empty if all is computed. By operation: somebody beside waits for it; its event.
  std::vector<bool> is_awaited_;
  std::vector<EventHandle> events_;
  EventHandle begin_;
  std::array<std::int32_t, kBlockStreams> latest_{-1, -1, -1};  // by stream; of those beside
};

}  // namespace stepcast
