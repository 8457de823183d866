// SPDX-License-Identifier: Apache-2.0
// How long the operations of a running program take.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "execute/operation_observer.h"
#include "operation/phase.h"

namespace stepcast {

struct Operation;

class OperationTimes final : public OperationObserver {
 public:
  explicit OperationTimes(Device& device) : device_(device) {}

  void begin(const Operation& operation) override;
  void end(const Operation& operation) override;
  void beside(const Operation& operation, const EventHandle& event) override;
  void begin_wait(const Operation& beside) override;
  void end_wait(const Operation& beside) override;
  void end_step();  // waits for what is computed

  struct Entry {
    const Operation* operation;   // the first of them
    std::vector<double> seconds;  // of each call
    double exposed_s = 0;         // of all calls: nothing else was computed meanwhile
  };
  using Key = std::tuple<std::string, std::string, Phase>;  // signature, name, phase
  const std::map<Key, Entry>& entries() const { return entries_; }

 private:
  enum class Kind { kComputed, kBeside, kWait };
  struct Span {
    Kind kind;
    Entry* entry;
    EventHandle begin, end;  // kBeside: one event, which is the span
  };
  Entry& entry_of(const Operation& operation);

  Device& device_;
  std::map<Key, Entry> entries_;
  // Operations live as long as their program: their signatures are made once.
  std::map<const Operation*, Entry*> known_;
  std::vector<Span> spans_;  // of this step
};

}  // namespace stepcast
