// SPDX-License-Identifier: Apache-2.0
#include "schedule/dual_pipe_order.h"

#include <deque>

namespace stepcast {
namespace {

class StageWriter {
 public:
  explicit StageWriter(const std::array<std::int64_t, 2>& first) {
    for (std::size_t chunk = 0; chunk < 2; ++chunk) {
      forwards_[chunk] = backwards_[chunk] = static_cast<std::int32_t>(first[chunk]);
    }
  }
  void forward(std::int32_t chunk) {
    add(Pass::kForward, forwards_[static_cast<std::size_t>(chunk)]++, chunk);
  }
  void backward(std::int32_t chunk) {
    add(Pass::kBackward, backwards_[static_cast<std::size_t>(chunk)]++, chunk);
  }
  void input_gradient(std::int32_t chunk) {
    std::int32_t& next = backwards_[static_cast<std::size_t>(chunk)];
    waiting_.push_back({Pass::kWeightGradient, next, chunk});
    add(Pass::kInputGradient, next++, chunk);
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
  std::array<std::int32_t, 2> forwards_{}, backwards_{};
  std::deque<Slot> waiting_;
};

}  // namespace

// The eight steps, in the order of the two files.
StageOrder dual_pipe_order(const DualPipePlace& place) {
  const std::int64_t ahead = place.ahead, behind = place.behind;
  StageWriter out(place.first);
  const auto times = [](std::int64_t count, const auto& what) {
    for (std::int64_t i = 0; i < count; ++i) what(i);
  };
  times(2 * behind, [&](std::int64_t) { out.forward(0); });
  times(ahead + 1, [&](std::int64_t) { out.forward(0), out.forward(1); });
  times(behind, [&](std::int64_t) {
    out.input_gradient(1);
    out.weight_gradient();
    out.forward(1);
  });
  times(place.micro_batches - 2 * behind - ahead - 1, [&](std::int64_t) {
    out.forward(0), out.backward(1);
    out.forward(1), out.backward(0);
  });
  times(behind, [&](std::int64_t) {
    out.backward(1);
    out.forward(1), out.backward(0);
  });
  // From the middle on weight gradients are put off.
  std::int64_t backwards = 0;
  const auto drain = [&](std::int32_t chunk) {
    if (backwards++ < ahead + 1) {
      out.backward(chunk);
    } else {
      out.input_gradient(chunk);
    }
  };
  times(ahead + 1, [&](std::int64_t) { drain(1), drain(0); });
  times(behind, [&](std::int64_t) { out.weight_gradient(), out.input_gradient(0); });
  times(ahead + 1, [&](std::int64_t) { out.weight_gradient(); });
  return out.take();
}

}  // namespace stepcast
