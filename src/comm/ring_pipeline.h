// SPDX-License-Identifier: Apache-2.0
// Runs a RingPlan in segments: while one segment is summed the next is on its way, and what has
// come is passed on before the rest of its slice is there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective_operation.h"
#include "comm/ring_plan.h"
#include "comm/transport.h"

namespace stepcast {

class RingPipeline final : public CollectiveOperation {
 public:
  RingPipeline(std::shared_ptr<RankGroup> group, const char* name, std::span<float> data,
               const RingPlan& plan, Reduction reduction);

 private:
  struct Incoming {
    Slice segment;
    bool reduce;
    std::size_t after_sends;  // so many must have ended: it overwrites what they send
  };
  // Messages posted ahead on either side: one under way, one to follow it at once, and room for a
  // neighbour that is a little ahead.
  static constexpr std::size_t kWindow = 4;

  bool advance() override;
  void withdraw() override;
  int awaited() const override;
  void post_receives();
  void finish_receive();
  void post_sends();
  void finish_sends();

  std::size_t add_sends(const Slice& slice);
  std::span<float> place_of(const Incoming& incoming, std::size_t index);

  const std::span<float> data_;
  const Reduction reduction_;
  const int left_, right_;
  std::vector<Incoming> receives_;
  std::vector<Slice> sends_;
  std::size_t sends_at_start_ = 0;                  // then one more after each receive
  std::int64_t scratch_elements_ = 0;               // per receive that is summed
  std::unique_ptr<float[]> scratch_;                // kWindow of them
  std::size_t received_ = 0, receives_posted_ = 0;  // of receives_
  std::size_t sent_ = 0, sends_posted_ = 0;         // of sends_
  std::array<std::unique_ptr<MessageTransfer>, kWindow> receiving_, sending_;
};

}  // namespace stepcast
