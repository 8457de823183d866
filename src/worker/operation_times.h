// SPDX-License-Identifier: Apache-2.0
// How long each operation of a running program takes, by signature and place.
#pragma once

#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execute/role_runner.h"

namespace stepcast {

class OperationTimes final : public OperationObserver {
 public:
  void begin(const Operation& operation) override;
  void end(const Operation& operation) override;

  struct Entry {
    std::string signature;
    std::vector<double> seconds;  // of each call
  };
  using Key = std::pair<const char*, Phase>;  // the operation's name and phase
  const std::map<Key, Entry>& entries() const { return entries_; }

 private:
  std::map<Key, Entry> entries_;
  Clock::time_point begin_;
};

}  // namespace stepcast
