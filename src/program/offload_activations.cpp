// SPDX-License-Identifier: Apache-2.0
#include "program/offload_activations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/host_link.h"
#include "layout/scenario.h"
#include "operation/buffer.h"
#include "program/instruction.h"
#include "program/program.h"
#include "program/rank_stream.h"
#include "program/waits.h"
#include "schedule/pass.h"

namespace stepcast {
namespace {

constexpr InstructionIndex kNothing = -1;

// Offloaded blocks of a chunk.
struct OffloadedBlocks {
  std::int32_t first, end;
};

class Offloading {
 public:
  Offloading(const Program& program, const Role& role, std::vector<OffloadedBlocks> offloaded)
      : program_(program), role_(role), offloaded_(std::move(offloaded)) {}

  std::vector<Instruction> instructions() {
    std::vector<InstructionIndex> last;  // of each instruction of the role: what it has become
    for (const Instruction& own : role_.instructions) {
      Instruction what = own;
      what.waits.renumber(last);
      const auto* pass = own.as<RunPass>();
      if (pass == nullptr) {
        add(std::move(what));
      } else if (pass->slot.pass == Pass::kWeightGradient) {
        last_run_ = add(std::move(what));  // all that it reads came with the input gradients
      } else {
        run_in_parts(what, pass->slot.pass == Pass::kForward);
      }
      last.push_back(pass != nullptr ? last_run_ : static_cast<InstructionIndex>(out_.size()) - 1);
    }
    return std::move(out_);
  }

 private:
  const OffloadedBlocks& offloaded(std::int32_t chunk) const {
    return offloaded_[static_cast<std::size_t>(chunk)];
  }
  bool is_offloaded(std::int32_t chunk, std::int32_t block) const {
    return offloaded(chunk).first <= block && block < offloaded(chunk).end;
  }
  const Block& block(std::int32_t chunk, std::int32_t index) const {
    const Chunk& own = role_.chunks[static_cast<std::size_t>(chunk)];
    return program_.block(own.blocks[static_cast<std::size_t>(index)]);
  }
  InstructionIndex add(Instruction what) {
    out_.push_back(std::move(what));
    return static_cast<InstructionIndex>(out_.size()) - 1;
  }

  // Layers that are offloaded run by themselves, and those around them in one part each. So does
  // the backward behind the last of them: beside it that one comes back.
  std::vector<RunPass> parts_of(const RunPass& pass, bool forward) const {
    std::vector<RunPass> out;
    const std::int32_t chunk = pass.slot.chunk;
    std::int32_t begin = pass.block_begin;
    while (begin < pass.block_end) {
      std::int32_t end = begin + 1;
      const OffloadedBlocks& own = offloaded(chunk);
      const bool behind = !forward && begin == own.end && own.end > own.first;
      const bool alone = is_offloaded(chunk, begin) || behind;
      while (!alone && end < pass.block_end && !is_offloaded(chunk, end)) ++end;
      RunPass part = pass;
      part.block_begin = begin;
      part.block_end = end;
      out.push_back(part);
      begin = end;
    }
    if (!forward) std::ranges::reverse(out);
    return out;
  }

  void run_in_parts(const Instruction& whole, bool forward) {
    const std::vector<RunPass> parts = parts_of(*whole.as<RunPass>(), forward);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Instruction part{whole.stream, whole.name, parts[i]};
      if (i == 0) take_begin(part, whole);
      if (i + 1 == parts.size()) take_end(part, whole);
      if (forward) {
        run_forward(std::move(part), parts[i]);
      } else {
        run_backward(std::move(part), parts[i]);
      }
    }
  }

  // Two layers may be on their way: the one after them waits until the first has left.
  void run_forward(Instruction part, const RunPass& pass) {
    part.wait_for(left_before_);
    last_run_ = add(std::move(part));
    if (!is_offloaded(pass.slot.chunk, pass.block_begin)) return;
    const InstructionIndex copy = this->copy(pass, pass.block_begin, CopyDirection::kToHost);
    out_[static_cast<std::size_t>(copy)].wait_for(last_run_);
    left_[{pass.slot.chunk, pass.slot.micro_batch, pass.block_begin}] = copy;
    left_before_ = std::exchange(left_last_, copy);
  }

  // The layer before comes back while this one runs.
  void run_backward(Instruction part, const RunPass& pass) {
    const std::int32_t before = pass.block_begin - 1;
    InstructionIndex back = kNothing;
    if (is_offloaded(pass.slot.chunk, before)) {
      back = copy(pass, before, CopyDirection::kFromHost);
      Instruction& copied = out_[static_cast<std::size_t>(back)];
      copied.wait_for(last_run_);
      copied.wait_for(left_.at({pass.slot.chunk, pass.slot.micro_batch, before}));
    }
    if (is_offloaded(pass.slot.chunk, pass.block_begin)) part.wait_for(back_);
    last_run_ = add(std::move(part));
    back_ = back;
    left_before_ = left_last_ = kNothing;
  }

  InstructionIndex copy(const RunPass& pass, std::int32_t index, CopyDirection direction) {
    const MemoryParts saved = saved_by(block(pass.slot.chunk, index));
    const bool leaves = direction == CopyDirection::kToHost;
    const Slot forward{Pass::kForward, pass.slot.micro_batch, pass.slot.chunk};
    Instruction what{leaves ? Stream::kCopyOut : Stream::kCopyIn,
                     leaves ? "offload_activations" : "reload_activations",
                     ActivationCopy{{direction, total(saved)}, forward, index, index + 1}};
    (leaves ? what.death : what.birth) = saved;
    return add(std::move(what));
  }

  const Program& program_;
  const Role& role_;
  std::vector<OffloadedBlocks> offloaded_;  // by chunk
  std::vector<Instruction> out_;
  InstructionIndex last_run_ = kNothing;
  InstructionIndex left_last_ = kNothing, left_before_ = kNothing;  // copies of this forward
  InstructionIndex back_ = kNothing;                                // of the layer that runs next
  // By chunk, micro-batch and block.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, InstructionIndex> left_;
};

}  // namespace

MemoryParts saved_by(const Block& block) {
  MemoryParts saved = block.pass(Pass::kForward).memory.after;
  const auto part = [&](BufferId id) -> ByteCount& {
    return saved[static_cast<std::size_t>(block.buffers[id.index()].category)];
  };
  if (block.input.valid()) part(block.input) += block.buffers[block.input.index()].size();
  if (block.output.valid()) part(block.output) -= block.buffers[block.output.index()].size();
  return saved;
}

std::int64_t offloaded_layers(const Scenario& scenario, std::int64_t layers) {
  const double part = scenario.layout.offload.activations * static_cast<double>(layers);
  constexpr double kRounding = 1e-6;  // a fraction of n layers is n of them
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(part + kRounding)), 0,
                                  layers - 1);
}

void offload_activations(const Scenario& scenario, const Program& program, Role& role) {
  std::vector<OffloadedBlocks> offloaded;
  bool any = false;
  for (const Chunk& chunk : role.chunks) {
    const auto is_layer = [&](BlockId id) { return program.block(id).kind == BlockKind::kLayer; };
    const auto first = std::ranges::find_if(chunk.blocks, is_layer) - chunk.blocks.begin();
    const std::int64_t layers = std::ranges::count_if(chunk.blocks, is_layer);
    const std::int64_t count = layers > 1 ? offloaded_layers(scenario, layers) : 0;
    offloaded.push_back(
        {static_cast<std::int32_t>(first), static_cast<std::int32_t>(first + count)});
    any = any || count > 0;
  }
  if (any) role.instructions = Offloading(program, role, std::move(offloaded)).instructions();
}

}  // namespace stepcast
