// SPDX-License-Identifier: Apache-2.0
// A rank writes down the operations of a pass, of which some run beside the others.
#include "worker/operation_times.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "asynchronous_program.h"
#include "operation/signature.h"
#include "program/run_key.h"
#include "program/walk.h"
#include "threaded_training.h"

namespace stepcast {
namespace {

using testing::asynchronous;
using testing::GptCase;
using testing::is_collective;

constexpr int kTimedSteps = 2;
constexpr double kLate_s = 10e-3;

// Counts the products for input gradients, which asynchronous backwards reduce, and lets another
// rank wait until the collective behind one of them is waited for.
class Meeting {
 public:
  void product() { ++products_; }
  void waited_for() {
    waited_for_ = products_;
    waited_for_.notify_all();
  }
  void until_waited_for(int product) const {
    for (int seen = waited_for_; seen < product; seen = waited_for_) waited_for_.wait(seen);
  }

 private:
  int products_ = 0;  // of the rank that waits
  std::atomic<int> waited_for_ = 0;
};

bool is_input_gradient(const Operation& operation) {
  const auto* product = std::get_if<Gemm>(&operation.work);
  return product != nullptr && product->role == GemmRole::kInputGradient;
}

// Times what its rank does, and tells when the rank waits.
class TimedRank final : public OperationObserver {
 public:
  TimedRank(Device& device, Meeting& meeting) : times_(device), meeting_(meeting) {}
  OperationTimes& times() { return times_; }
  void begin(const Operation& operation) override {
    times_.begin(operation);
    if (is_collective(operation)) meeting_.waited_for();
  }
  void end(const Operation& operation) override {
    times_.end(operation);
    if (is_input_gradient(operation)) meeting_.product();
  }
  void beside(const Operation& operation, const EventHandle& since) override {
    times_.beside(operation, since);
  }
  void begin_wait(const Operation& operation) override {
    times_.begin_wait(operation);
    meeting_.waited_for();
  }
  void end_wait(const Operation& operation) override { times_.end_wait(operation); }

 private:
  OperationTimes times_;
  Meeting& meeting_;
};

// Comes to what follows a product for input gradients when the other rank has waited for a while.
class LateRank final : public OperationObserver {
 public:
  explicit LateRank(const Meeting& meeting) : meeting_(meeting) {}
  void begin(const Operation&) override {}
  void end(const Operation& operation) override {
    if (!is_input_gradient(operation)) return;
    meeting_.until_waited_for(++products_);
    std::this_thread::sleep_for(std::chrono::duration<double>(kLate_s));
  }
  void beside(const Operation&, const EventHandle&) override {}
  void begin_wait(const Operation&) override {}
  void end_wait(const Operation&) override {}

 private:
  const Meeting& meeting_;
  int products_ = 0;
};

// Entries of rank 0 of two that share tensors, after `kTimedSteps` steps; the other is late.
std::map<OperationTimes::Key, OperationTimes::Entry> timed(const Scenario& scenario,
                                                           const Program& program) {
  std::map<OperationTimes::Key, OperationTimes::Entry> out;
  const RankGrid grid(scenario.layout);
  Meeting meeting;
  testing::on_host().run(2, [&](DeviceCommunicator& world) {
    RoleRunner runner(scenario, program, grid, RankId(world.rank()), &world,
                      std::make_unique<HostDevice>(), {});
    TimedRank timed(runner.device(), meeting);
    LateRank late(meeting);
    if (world.rank() == 0) {
      runner.observe(&timed);
    } else {
      runner.observe(&late);
    }
    for (int s = 0; s < kTimedSteps; ++s) {
      runner.step();
      timed.times().end_step();
    }
    if (world.rank() == 0) out = timed.times().entries();
  });
  return out;
}

Scenario two_rank_scenario() {
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

TEST(OperationTimes, AWaitBelongsToTheCollectiveThatRunsBeside) {
  const Scenario scenario = two_rank_scenario();
  const Program program = asynchronous(lower(scenario));  // entries point into it
  double late = 0, exposed = 0, computed = 0;
  for (const auto& [key, entry] : timed(scenario, program)) {
    ASSERT_FALSE(entry.seconds.empty()) << std::get<0>(key);
    if (is_collective(*entry.operation)) {
      late = std::max(late, longest(entry.seconds));
      exposed += entry.exposed_s;
    } else {
      computed = std::max(computed, shortest(entry.seconds));
      EXPECT_EQ(entry.exposed_s, sum(entry.seconds)) << std::get<0>(key);
    }
  }
  EXPECT_GE(late, kLate_s);
  EXPECT_GE(exposed, kLate_s);
  EXPECT_LT(computed, exposed);
}

TEST(OperationTimes, AComputedCollectiveIsAnOperationLikeOthers) {
  const Scenario scenario = two_rank_scenario();
  const Program program = lower(scenario);
  double late = 0;
  for (const auto& [key, entry] : timed(scenario, program)) {
    EXPECT_EQ(entry.exposed_s, sum(entry.seconds)) << std::get<0>(key);
    if (is_collective(*entry.operation)) late = std::max(late, longest(entry.seconds));
  }
  EXPECT_GE(late, kLate_s);
}

// The gradients of several weights are accumulated by operations of one name.
TEST(OperationTimes, AreKeptBySignature) {
  const Scenario scenario = two_rank_scenario();
  const Program program = lower(scenario);
  std::map<OperationTimes::Key, std::size_t> expected;  // calls
  const Role& role = program.roles.front();
  for (const CountedRun& run : distinct_runs(role)) {
    for_each_block(role, *run.first, [&](const BlockVisit& at) {
      for (const Operation& operation : operations_of(program.block(at.block), at.pass)) {
        expected[{signature(operation), operation.name, operation.phase}] +=
            static_cast<std::size_t>(run.times) * kTimedSteps;
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
