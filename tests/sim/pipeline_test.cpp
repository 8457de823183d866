// SPDX-License-Identifier: Apache-2.0
// Pipelines of equal stages against their closed forms (Narayanan et al. 2021, section 2.2).
#include "scene.h"

namespace stepcast::sim {
namespace {

struct Slot {
  bool is_forward;
  int micro_batch;
};

std::vector<Slot> gpipe(int, int, int micro_batches) {
  std::vector<Slot> order;
  for (int m = 0; m < micro_batches; ++m) order.push_back({true, m});
  for (int m = micro_batches; m-- > 0;) order.push_back({false, m});
  return order;
}

std::vector<Slot> one_forward_one_backward(int stage, int stages, int micro_batches) {
  std::vector<Slot> order;
  const int warm_up = std::min(stages - 1 - stage, micro_batches);
  for (int m = 0; m < micro_batches + warm_up; ++m) {
    if (m < micro_batches) order.push_back({true, m});
    if (m >= warm_up) order.push_back({false, m - warm_up});
  }
  return order;
}

constexpr double kForward = 1e-3;
constexpr double kBackward = 2e-3;

using Order = std::vector<Slot> (*)(int stage, int stages, int micro_batches);

// The end of the step, with transfers that take no time.
std::int64_t span_ps(Order order, int stages, int micro_batches) {
  Scene scene;
  std::vector<std::vector<TaskId>> forward(static_cast<std::size_t>(stages));
  for (auto& tasks : forward) tasks.resize(static_cast<std::size_t>(micro_batches));
  auto backward = forward;
  for (int s = 0; s < stages; ++s) {
    const StreamId stream = scene.stream();
    for (const Slot slot : order(s, stages, micro_batches)) {
      auto& tasks = (slot.is_forward ? forward : backward)[static_cast<std::size_t>(s)];
      tasks[static_cast<std::size_t>(slot.micro_batch)] =
          scene.delay(stream, slot.is_forward ? kForward : kBackward);
    }
  }
  for (std::size_t m = 0; m < static_cast<std::size_t>(micro_batches); ++m) {
    for (std::size_t s = 0; s + 1 < forward.size(); ++s) {
      scene.workload.depend(forward[s][m], forward[s + 1][m]);
      scene.workload.depend(backward[s + 1][m], backward[s][m]);
    }
  }
  scene.run();
  return scene.replayed.end.ps;
}

class PipelineBubble : public testing::TestWithParam<Order> {};

TEST_P(PipelineBubble, IsExactlyItsClosedForm) {
  // bubble = 1 - m (f + b) / span = (p - 1) / (m + p - 1)  <=>  span = (m + p - 1) (f + b).
  const std::int64_t slot_ps = duration(Seconds(kForward)).ps + duration(Seconds(kBackward)).ps;
  for (int p = 1; p <= 8; ++p) {
    for (int m = p; m <= 24; m += 3) {
      EXPECT_EQ(span_ps(GetParam(), p, m), (m + p - 1) * slot_ps) << "p " << p << ", m " << m;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, PipelineBubble,
                         testing::Values(&gpipe, &one_forward_one_backward));

// One send or receive in the order of one rank: micro-batch m of the activation or of the gradient.
struct Message {
  bool is_activation;
  std::size_t micro_batch;
};

// Two stages whose transfers are rendezvous, each rank with one stream or with one per direction.
std::vector<TaskId> cycle_of_transfers(bool stream_per_direction) {
  // 1F1B: stage 0 sends two activations before it needs the first gradient; stage 1 answers the
  // first activation with a gradient before it asks for the second.
  const std::vector<Message> stage_0 = {{true, 0}, {true, 1}, {false, 0}, {false, 1}};
  const std::vector<Message> stage_1 = {{true, 0}, {false, 0}, {true, 1}, {false, 1}};
  Scene scene;
  const MemberSpec seat = Scene::on(StreamId());
  std::vector<TaskId> activations;
  std::vector<TaskId> gradients;
  for (int m = 0; m < 2; ++m) {
    activations.push_back(scene.flow_on({seat, seat}, {.work = 1, .bound = 1, .uses = {}}));
    gradients.push_back(scene.flow_on({seat, seat}, {.work = 1, .bound = 1, .uses = {}}));
  }
  std::int32_t member = 0;
  for (const auto& order : {stage_0, stage_1}) {
    const StreamId down = scene.stream();
    const StreamId up = stream_per_direction ? scene.stream() : down;
    for (const Message& message : order) {
      const TaskId task = (message.is_activation ? activations : gradients)[message.micro_batch];
      scene.workload.place(task, member, Scene::on(message.is_activation ? down : up));
    }
    ++member;
  }
  const std::vector<TaskId> cycle = find_cycle(scene.workload);
  EXPECT_EQ(replay(scene.workload).has_value(), cycle.empty());
  return cycle;
}

TEST(Pipeline, BlockingTransfersOf1F1BOnOneStreamDeadlock) {
  EXPECT_EQ(cycle_of_transfers(false).size(), 2U);
}

TEST(Pipeline, AStreamPerDirectionMakesTheTransfersOf1F1BSound) {
  EXPECT_TRUE(cycle_of_transfers(true).empty());
}

}  // namespace
}  // namespace stepcast::sim
