// SPDX-License-Identifier: Apache-2.0
// Puts a trace together of its events, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/json_fwd.h"
#include "traces/event_scanner.h"
#include "traces/profiler_trace.h"

namespace stepcast {

class TraceBuilder {
 public:
  explicit TraceBuilder(const std::string& file);
  Errors take(const RawEvent& event);
  // Once, behind the last event; `head` is what stands around them.
  Result<Trace> finish(const SortedJson& head);

 private:
  struct Launch {
    double begin_us = 0, end_us = 0;
    std::int32_t thread = -1;
  };
  // An operator that multiplies matrices.
  struct Product {
    double begin_us = 0, end_us = 0;
    std::int32_t shape = -1;
  };

  std::int32_t name(const std::string& text);
  Error wrong(const RawEvent& event, std::string message) const;
  Error too_much() const;
  Errors take_work(const RawEvent& raw, const SortedJson& event, TraceWorkKind kind);
  void take_launch(const SortedJson& event);
  void take_product(const SortedJson& event, const ProductOperator& of);
  void take_step(const SortedJson& event);
  std::int32_t message_of(const SortedJson& args, const std::string& kernel);
  void link();
  std::int32_t product_at(const Launch& launch) const;

  Trace out_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::map<std::int64_t, std::int32_t> devices_;
  std::vector<std::int64_t> correlations_;  // by work, -1: none
  std::unordered_map<std::int64_t, Launch> launches_;
  std::unordered_map<std::int32_t, std::vector<Product>> products_;  // by thread
  std::size_t held_ = 0;  // bytes, of this and the trace, to about a half
};

}  // namespace stepcast
