// SPDX-License-Identifier: Apache-2.0
// Short words for building small workloads in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/engine.h"

namespace stepcast::sim {

inline constexpr std::int64_t kSecond = 1'000'000'000'000;  // in picoseconds

class Scene {
 public:
  Workload workload;

  StreamId stream() { return workload.add_stream(); }
  ResourceId resource(double capacity) { return workload.add_resource(capacity); }

  // Takes `seconds` on one stream and uses nothing.
  TaskId delay(StreamId stream, double seconds) {
    const std::vector<MemberSpec> members = {on(stream)};
    return workload.add_task({.members = members, .latency = duration(Seconds(seconds))});
  }

  struct Flow {
    double work;
    double bound;
    std::vector<Use> uses;
    double share = 1;
    double latency_s = 0;
  };
  TaskId flow(StreamId stream, const Flow& flow) { return flow_on({on(stream)}, flow); }
  TaskId flow_on(const std::vector<MemberSpec>& members, const Flow& flow) {
    return workload.add_task({.members = members,
                              .latency = duration(Seconds(flow.latency_s)),
                              .work = flow.work,
                              .rate_bound = flow.bound,
                              .share = flow.share,
                              .uses = flow.uses});
  }

  static MemberSpec on(StreamId stream, TaskId issuer = {}, double floor_s = 0,
                       std::span<const Use> holds = {}) {
    return {stream, issuer, duration(Seconds(floor_s)), holds};
  }

  // Replays and keeps the times; the test fails when the workload cannot end.
  void run() {
    Result<Replay> result = replay(workload, nullptr, nullptr, &rates);
    ASSERT_TRUE(result.has_value()) << to_string(result.error());
    replayed = std::move(*result);
  }
  double start(TaskId task) const { return in_seconds(replayed.tasks[task.index()].start); }
  double end(TaskId task) const { return in_seconds(replayed.tasks[task.index()].end); }
  std::int64_t end_ps(TaskId task) const { return replayed.tasks[task.index()].end.ps; }

  Replay replayed;
  std::vector<RateChange> rates;

 private:
  static double in_seconds(Time time) { return seconds(time).value(); }
};

}  // namespace stepcast::sim
