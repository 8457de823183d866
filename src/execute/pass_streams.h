// SPDX-License-Identifier: Apache-2.0
// The streams of one pass over a block while the host issues it: transfers beside what is computed,
// the events between them (Operation::after), and their common end. A pass that computes only needs
// nothing of this.
#pragma once

#include <array>
#include <vector>

#include "execute/device.h"

namespace stepcast {

class PassStreams {
 public:
  // The pass begins behind what has been queued for computing so far.
  PassStreams(Device& device, const std::vector<Operation>& pass);

  // What is computed from now on runs behind what operation i, on the computing stream, waits for.
  void before(std::size_t i);
  // Operation i has been queued for computing.
  void behind(std::size_t i);
  // Operation i runs beside what is computed.
  void post(std::size_t i, Transfer transfer);
  // What is computed from now on runs behind all of the pass.
  void join();

 private:
  using Events = std::array<EventHandle, kBlockStreams>;

  Device& device_;
  const std::vector<Operation>& pass_;
  // Empty where all is computed. By operation: somebody beside waits for it; its event.
  std::vector<bool> is_awaited_;
  std::vector<EventHandle> events_;
  EventHandle begin_;
  Events latest_;  // by stream; of those beside
};

}  // namespace stepcast
