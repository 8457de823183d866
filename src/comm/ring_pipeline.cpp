// SPDX-License-Identifier: Apache-2.0
#include "comm/ring_pipeline.h"

#include <algorithm>

#include "comm/rank_group.h"
#include "comm/reduce.h"
#include "comm/segments.h"

namespace stepcast {

RingPipeline::RingPipeline(std::shared_ptr<RankGroup> group, const char* name,
                           std::span<float> data, const RingPlan& plan, Reduction reduction)
    : CollectiveOperation(group, name, static_cast<std::int64_t>(data.size_bytes())),
      data_(data),
      reduction_(reduction),
      left_((group->rank() + group->size() - 1) % group->size()),
      right_((group->rank() + 1) % group->size()) {
  std::vector<std::size_t> first_of_send;  // its index in sends_
  if (plan.first) first_of_send.push_back(add_sends(*plan.first));
  sends_at_start_ = sends_.size();
  for (const RingPlan::Receive& receive : plan.receives) {
    const std::vector<Slice> segments = segments_of(receive.slice);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      // A slice that is sent and later received again is cut the same way both times.
      const std::size_t after =
          receive.overwrites ? first_of_send[static_cast<std::size_t>(*receive.overwrites)] + i + 1
                             : 0;
      receives_.push_back({.segment = segments[i], .reduce = receive.reduce, .after_sends = after});
      if (receive.reduce) scratch_elements_ = std::max(scratch_elements_, segments[i].size());
    }
    if (receive.forward) first_of_send.push_back(add_sends(receive.slice));
  }
  scratch_ = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(scratch_elements_) *
                                                     kWindow);
}

std::size_t RingPipeline::add_sends(const Slice& slice) {
  const std::size_t first = sends_.size();
  for (const Slice& segment : segments_of(slice)) sends_.push_back(segment);
  return first;
}

std::span<float> RingPipeline::place_of(const Incoming& incoming, std::size_t index) {
  const auto size = static_cast<std::size_t>(incoming.segment.size());
  if (!incoming.reduce)
    return data_.subspan(static_cast<std::size_t>(incoming.segment.begin), size);
  return {scratch_.get() + (index % kWindow) * static_cast<std::size_t>(scratch_elements_), size};
}

bool RingPipeline::advance() {
  // Handles one receive per call, so that other operations of the process need not wait for all of
  // this one.
  finish_sends();
  post_receives();
  finish_receive();
  post_sends();
  return received_ == receives_.size() && sent_ == sends_.size();
}

void RingPipeline::post_receives() {
  while (receives_posted_ < std::min(receives_.size(), received_ + kWindow) &&
         receives_[receives_posted_].after_sends <= sent_) {
    const std::span<float> place = place_of(receives_[receives_posted_], receives_posted_);
    receiving_[receives_posted_ % kWindow] =
        group().receive(place, left_, RankGroup::Purpose::kCollective, lane());
    ++receives_posted_;
    moved();
  }
}

void RingPipeline::finish_receive() {
  if (received_ == receives_posted_ || !receiving_[received_ % kWindow]->poll()) return;
  const Incoming& incoming = receives_[received_];
  if (incoming.reduce) {
    reduce_into(data_.data() + incoming.segment.begin, place_of(incoming, received_), reduction_);
  }
  receiving_[received_ % kWindow].reset();
  ++received_;
  moved();
}

void RingPipeline::post_sends() {
  // Receives are passed on in order; those that are not passed on come last.
  const std::size_t ready = std::min(sends_.size(), sends_at_start_ + received_);
  while (sends_posted_ < std::min(ready, sent_ + kWindow)) {
    const Slice& segment = sends_[sends_posted_];
    sending_[sends_posted_ % kWindow] =
        group().send(data_.subspan(static_cast<std::size_t>(segment.begin),
                                   static_cast<std::size_t>(segment.size())),
                     right_, RankGroup::Purpose::kCollective, lane());
    ++sends_posted_;
    moved();
  }
}

void RingPipeline::finish_sends() {
  while (sent_ < sends_posted_ && sending_[sent_ % kWindow]->poll()) {
    sending_[sent_ % kWindow].reset();
    ++sent_;
    moved();
  }
}

void RingPipeline::withdraw() {
  for (auto& transfer : receiving_) transfer.reset();
  for (auto& transfer : sending_) transfer.reset();
}

int RingPipeline::awaited() const { return received_ < receives_.size() ? left_ : right_; }

}  // namespace stepcast
