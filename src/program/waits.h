// SPDX-License-Identifier: Apache-2.0
// The instructions that another one waits for: a small set in the order in which they were named.
// Nearly all are of four at most, which need no allocation; more are kept in a vector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

using InstructionIndex = std::int32_t;

class Waits {
 public:
  void add(InstructionIndex instruction) {  // once, however often it is named
    if (contains(instruction)) return;
    if (!many_.empty()) {
      many_.push_back(instruction);
    } else if (few_count_ < few_.size()) {
      few_[few_count_++] = instruction;
    } else {
      many_.assign(few_.begin(), few_.end());
      many_.push_back(instruction);
    }
  }
  void clear() {
    few_count_ = 0;
    many_.clear();
  }

  const InstructionIndex* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  const InstructionIndex* end() const { return begin() + size(); }
  InstructionIndex* begin() { return many_.empty() ? few_.data() : many_.data(); }
  InstructionIndex* end() { return begin() + size(); }
  std::size_t size() const { return many_.empty() ? few_count_ : many_.size(); }
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
  std::vector<InstructionIndex> many_;  // all of them, once there are more than four
};

}  // namespace stepcast
