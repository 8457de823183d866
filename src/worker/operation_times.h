// SPDX-License-Identifier: Apache-2.0
// How long the operations of a running program take, kept by name and phase as tables show them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execute/role_runner.h"

namespace stepcast {

class OperationTimes final : public OperationObserver {
 public:
  explicit OperationTimes(Device& device) : device_(device) {}

  void begin(const Operation& operation) override;
  void end(const Operation& operation) override;
  void end_step();  // waits for what is computed

  struct Entry {
    std::string signature;        // of the first of that name
    std::vector<double> seconds;  // of each call
  };
  using Key = std::pair<const char*, Phase>;  // the operation's name and phase
  const std::map<Key, Entry>& entries() const { return entries_; }

 private:
  Device& device_;
  std::map<Key, Entry> entries_;
  // The marks of this step, before and behind each operation, and whose they are.
  std::vector<EventHandle> marks_;
  std::vector<Entry*> marked_;
};

}  // namespace stepcast
