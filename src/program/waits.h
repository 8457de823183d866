// SPDX-License-Identifier: Apache-2.0
// The instructions that another one waits for: a small set in the order in which they were named.
// Nearly all are of four at most, which need no allocation; more are kept in a vector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/rare.h"

namespace stepcast {

using InstructionIndex = std::int32_t;

/// The place of no instruction.
inline constexpr InstructionIndex kNoInstruction = -1;

class Waits {
 public:
  void add(InstructionIndex instruction) {  // once, however often it is named
    if (contains(instruction)) return;
    if (few_count_ < few_.size()) {
      few_[few_count_++] = instruction;
      return;
    }
    if (!many_.exists()) many_.make().assign(few_.begin(), few_.end());
    many_.make().push_back(instruction);
  }
  // The list is written anew: `now` has, for each instruction of the old one, what ends it.
  void renumber(std::span<const InstructionIndex> now) {
    for (InstructionIndex& wait : *this) wait = now[static_cast<std::size_t>(wait)];
  }

  const InstructionIndex* begin() const {
    return many_.exists() ? many_.get().data() : few_.data();
  }
  const InstructionIndex* end() const { return begin() + size(); }
  InstructionIndex* begin() { return many_.exists() ? many_.make().data() : few_.data(); }
  InstructionIndex* end() { return begin() + size(); }
  std::size_t size() const { return many_.exists() ? many_.get().size() : few_count_; }
  bool empty() const { return size() == 0; }
  bool contains(InstructionIndex instruction) const {
    return std::find(begin(), end(), instruction) != end();
  }
  bool operator==(const Waits& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::array<InstructionIndex, 4> few_{};
  std::uint32_t few_count_ = 0;
  Rare<std::vector<InstructionIndex>> many_;  // all of them, once there are more than four
};

}  // namespace stepcast
