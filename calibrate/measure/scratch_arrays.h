// SPDX-License-Identifier: Apache-2.0
// Memory for the kernel of an operation that no program runs: arrays of its own, in copies that
// take turns and together are twice a cache. Each call finds its data in memory, as in a step.
// Arrays of some kilobytes stay in the cache, as they do in a step.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "execute/kernel_arrays.h"
#include "operation/operation.h"

namespace stepcast {

// Memory of one device; what it hands out lives as long as it does.
class ScratchMemory {
 public:
  virtual ~ScratchMemory() = default;
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual Array integers(const std::vector<std::int64_t>& values) = 0;
  virtual Array bytes(const std::vector<std::int8_t>& values) = 0;
};

class ScratchArrays final : public KernelArrays {
 public:
  // `work` says how much a call touches, and so how many copies take turns.
  ScratchArrays(const Operation::Work& work, ScratchMemory& memory, Kernels& kernels,
                std::int64_t cache_bytes);

  Array read(std::size_t i, const ArraySpec& spec) override { return next(Use::kRead, i, spec); }
  Array write(std::size_t i, const ArraySpec& spec) override { return next(Use::kWrite, i, spec); }
  bool has_write(std::size_t) const override { return true; }
  bool reads_more_than(std::size_t) const override { return false; }
  HeadArray read_heads(std::size_t i, HeadSide side, const HeadSpec& spec) override {
    return {read(i, {spec.tokens * spec.width(side), spec.type}), spec.width(side)};
  }
  HeadArray write_heads(HeadSide side, const HeadSpec& spec) override {
    const ArraySpec packed{spec.tokens * spec.packed(), spec.type};
    return {write(0, packed).from(spec.begin(side)), spec.packed()};
  }
  RowArray read_rows(std::size_t i, const RowSpec& spec) override {
    return {read(i, {spec.rows * spec.width, spec.type}), spec.width};
  }
  RowArray write_rows(std::size_t i, const RowSpec& spec) override {
    return {write(i, {spec.rows * spec.width, spec.type}), spec.width};
  }
  Array weight(std::size_t i, const ArraySpec& spec) override {
    return next(Use::kWeight, i, spec);
  }
  GradientPlace gradient(std::size_t i, const ArraySpec& spec) override {
    return {next(Use::kGradient, i, spec), false};
  }
  Array tokens(std::int64_t count, std::int64_t limit, std::int64_t) override {
    return indices(count, limit);
  }
  Array targets(std::int64_t count, std::int64_t limit, std::int64_t) override {
    return indices(count, limit);
  }
  // Which experts tokens go to: to each as many as to the next, or one more.
  Array chosen(const RouterShape& shape);

 private:
  enum class Use { kRead, kWrite, kWeight, kGradient };
  struct Rotation {
    Array first;
    std::int64_t step = 0, copies = 1;  // elements from one copy to the next
    std::int64_t turn = 0;
  };
  Array next(Use use, std::size_t i, const ArraySpec& spec);
  Rotation make(const ArraySpec& spec);
  Array indices(std::int64_t count, std::int64_t limit);

  ScratchMemory& memory_;
  Kernels& kernels_;
  std::int64_t copies_;
  std::map<std::pair<Use, std::size_t>, Rotation> rotations_;
  std::optional<Array> indices_, chosen_;
};

// One call of the operation's kernel. False where there is none: of collectives and aliases,
// adapters, gates of shared experts, four-bit weights, products in fp8 and batched ones, odd heads
// of rotations, and queries that are not as many as keys. Work over a rank's states runs over one
// piece. Experts have rows as many as each other (calibrate/measure/scratch_experts.h).
bool call_on_scratch(const Operation::Work& work, ScratchArrays& arrays, Kernels& kernels);

}  // namespace stepcast
