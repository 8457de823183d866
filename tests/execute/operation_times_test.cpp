// SPDX-License-Identifier: Apache-2.0
// What a rank writes down about the operations of a pass of which some run beside the others.
#include "worker/operation_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "asynchronous_program.h"
#include "operation/signature.h"
#include "program/walk.h"
#include "threaded_training.h"

namespace stepcast {
namespace {

using testing::asynchronous;
using testing::GptCase;
using testing::is_collective;

constexpr int kSteps = 2;
constexpr double kLate_s = 10e-3;

// Comes late to what follows a product for input gradients, which asynchronous backwards reduce.
class LateRank final : public OperationObserver {
 public:
  void begin(const Operation&) override {}
  void end(const Operation& operation) override {
    const auto* product = std::get_if<Gemm>(&operation.work);
    if (product == nullptr || product->role != GemmRole::kInputGradient) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(kLate_s));
  }
  void beside(const Operation&, const EventHandle&) override {}
  void begin_wait(const Operation&) override {}
  void end_wait(const Operation&) override {}
};

// Entries of rank 0 of two that share tensors, after `kSteps` steps; the other is late.
std::map<OperationTimes::Key, OperationTimes::Entry> timed(const Scenario& scenario,
                                                           const Program& program) {
  std::map<OperationTimes::Key, OperationTimes::Entry> out;
  const RankGrid grid(scenario.layout);
  testing::on_host().run(2, [&](DeviceCommunicator& world) {
    RoleRunner runner(scenario, program, grid, RankId(world.rank()), &world,
                      std::make_unique<HostDevice>(), {});
    OperationTimes times(runner.device());
    LateRank late;
    if (world.rank() == 0) {
      runner.observe(&times);
    } else {
      runner.observe(&late);
    }
    for (int s = 0; s < kSteps; ++s) {
      runner.step();
      times.end_step();
    }
    if (world.rank() == 0) out = times.entries();
  });
  return out;
}

Scenario two_ranks() {
  GptCase c = testing::tiny_local();
  c.global_batch = 4;
  c.tp = 2;
  return testing::gpt(c);
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}
double longest(const std::vector<double>& values) { return *std::ranges::max_element(values); }
double shortest(const std::vector<double>& values) { return *std::ranges::min_element(values); }

// The product for the weight gradient, which computes meanwhile, hides less than half of the delay.
TEST(OperationTimes, AWaitBelongsToTheCollectiveThatRunsBeside) {
  const Scenario scenario = two_ranks();
  double late = 0, exposed = 0, computed = 0;
  for (const auto& [key, entry] : timed(scenario, asynchronous(lower(scenario)))) {
    ASSERT_FALSE(entry.seconds.empty()) << std::get<0>(key);
    if (is_collective(*entry.operation)) {
      late = std::max(late, longest(entry.seconds));
      exposed += entry.exposed_s;
    } else {
      computed = std::max(computed, shortest(entry.seconds));
      EXPECT_EQ(entry.exposed_s, sum(entry.seconds)) << std::get<0>(key);
    }
  }
  EXPECT_GT(late, kLate_s / 2);
  EXPECT_GT(exposed, kLate_s / 2);
  EXPECT_LT(computed, kLate_s / 2);
}

TEST(OperationTimes, AComputedCollectiveIsAnOperationLikeOthers) {
  const Scenario scenario = two_ranks();
  double late = 0;
  for (const auto& [key, entry] : timed(scenario, lower(scenario))) {
    EXPECT_EQ(entry.exposed_s, sum(entry.seconds)) << std::get<0>(key);
    if (is_collective(*entry.operation)) late = std::max(late, longest(entry.seconds));
  }
  EXPECT_GT(late, kLate_s / 2);
}

// The gradients of several weights are accumulated by operations of one name.
TEST(OperationTimes, AreKeptBySignature) {
  const Scenario scenario = two_ranks();
  const Program program = lower(scenario);
  std::map<OperationTimes::Key, std::size_t> expected;  // calls
  const Role& role = program.roles.front();
  for (const CountedRun& run : distinct_runs(role)) {
    for_each_block(role, *run.first, [&](const BlockVisit& at) {
      for (const Operation& operation : operations_of(program.block(at.block), at.pass)) {
        expected[{signature(operation), operation.name, operation.phase}] +=
            static_cast<std::size_t>(run.times) * kSteps;
      }
    });
  }
  std::set<std::pair<std::string, Phase>> names;
  std::map<OperationTimes::Key, std::size_t> found;
  for (const auto& [key, entry] : timed(scenario, program)) {
    found[key] = entry.seconds.size();
    names.emplace(std::get<1>(key), std::get<2>(key));
  }
  EXPECT_EQ(found, expected);
  EXPECT_LT(names.size(), found.size());
}

}  // namespace
}  // namespace stepcast
