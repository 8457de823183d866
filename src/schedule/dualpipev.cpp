// SPDX-License-Identifier: Apache-2.0
// DualPipeV (deepseek-ai/DualPipe 3da1bbea, dualpipev.py): the model goes down the stages and comes
// back up, and each stage pairs the forward of one chunk with the backward of the other. Passes of
// a pair run one after the other here; what a framework overlaps inside a pair is not in an order.
#include <deque>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr std::int32_t kDown = 0, kUp = 1;  // local chunks

class StageWriter {
 public:
  void forward(std::int32_t chunk) { add(Pass::kForward, forwards_[chunk]++, chunk); }
  void backward(std::int32_t chunk) { add(Pass::kBackward, backwards_[chunk]++, chunk); }
  void input_gradient(std::int32_t chunk) {
    waiting_.push_back({Pass::kWeightGradient, backwards_[chunk], chunk});
    add(Pass::kInputGradient, backwards_[chunk]++, chunk);
  }
  void weight_gradient() {  // the oldest
    out_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  StageOrder take() { return std::move(out_); }

 private:
  void add(Pass pass, std::int32_t micro_batch, std::int32_t chunk) {
    out_.push_back({pass, micro_batch, chunk});
  }
  StageOrder out_;
  std::int32_t forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::deque<Slot> waiting_;
};

// The eight steps of dualpipev.py, in its order.
StageOrder order(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t behind = pipeline.stages - stage - 1;
  StageWriter out;
  const auto times = [](std::int64_t count, const auto& what) {
    for (std::int64_t i = 0; i < count; ++i) what(i);
  };
  times(2 * behind, [&](std::int64_t) { out.forward(kDown); });
  times(stage + 1, [&](std::int64_t) { out.forward(kDown), out.forward(kUp); });
  times(behind, [&](std::int64_t) {
    out.input_gradient(kUp);
    out.weight_gradient();
    out.forward(kUp);
  });
  times(pipeline.micro_batches - 2 * pipeline.stages + stage + 1, [&](std::int64_t) {
    out.forward(kDown), out.backward(kUp);
    out.forward(kUp), out.backward(kDown);
  });
  times(behind, [&](std::int64_t) {
    out.backward(kUp);
    out.forward(kUp), out.backward(kDown);
  });
  // From the middle on weight gradients are put off.
  std::int64_t backwards = 0;
  const auto drain = [&](std::int32_t chunk) {
    if (backwards++ < stage + 1) {
      out.backward(chunk);
    } else {
      out.input_gradient(chunk);
    }
  };
  times(stage + 1, [&](std::int64_t) { drain(kUp), drain(kDown); });
  times(behind, [&](std::int64_t) { out.weight_gradient(), out.input_gradient(kDown); });
  times(stage + 1, [&](std::int64_t) { out.weight_gradient(); });
  return out.take();
}

}  // namespace

extern const Schedule kDualPipeV = {.name = "dualpipev",
                                    .order = order,
                                    .placement = Placement::kFolded,
                                    .chunks = 2,
                                    .least_rounds = 2,
                                    .splits_backward = true,
                                    .bubble = "(p-1)(f&b + b+w - 3w), in times of a chunk",
                                    .in_flight = "p + 1/2",
                                    .source = "deepseek-ai/DualPipe, dualpipev.py"};

}  // namespace stepcast
