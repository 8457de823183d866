// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "program/step.h"

namespace stepcast {
namespace {

InstructionIndex last_on(const Role& role, Stream stream) {
  for (auto i = static_cast<InstructionIndex>(role.instructions.size()); i-- > 0;) {
    if (role.instructions[static_cast<std::size_t>(i)].stream == stream) return i;
  }
  return kNoInstruction;
}

// The ranks whose norms are added up before the update. Validation after the step (Qi et al. 2024,
// arXiv 2401.10241, section 4) leaves the stages out: each takes what those before it have found so
// far, a few bytes that are there when its own last gradient is, and the sum over all stages comes
// back during the next warm-up.
AxisGroup norm_group(const Scenario& scenario) {
  const bool sharded = scenario.layout.zero >= 1;
  if (scenario.training.grad_clip == GradClip::kPostValidation) {
    return sharded ? AxisGroup{Axis::kTp, Axis::kCp, Axis::kDp} : AxisGroup::kTensor;
  }
  return sharded ? AxisGroup::kWorld : AxisGroup::kModel;
}

// Megatron's HybridDeviceOptimizer copies and updates parameter by parameter, with streams of their
// own, where copies run beside the update (overlap_cpu_optimizer_d2h_h2d). So many pieces hide all
// but the ends.
constexpr std::int64_t kPieces = 16;

std::int64_t pieces_of(const Scenario& scenario) {
  return scenario.layout.overlap.offload ? kPieces : 1;
}

std::int64_t part_of(std::int64_t elements, std::int64_t piece, const Scenario& scenario) {
  const std::int64_t pieces = pieces_of(scenario);
  return elements * (piece + 1) / pieces - elements * piece / pieces;
}

// Copies of gradients to the host: the last of those that left as they were reduced (ZeRO's
// optimizers and FSDP), and pieces of the others.
struct CopiesOut {
  InstructionIndex as_reduced = kNoInstruction;
  std::vector<InstructionIndex> pieces;
  InstructionIndex last() const { return pieces.empty() ? as_reduced : pieces.back(); }
};

InstructionIndex last_as_reduced(const RoleBuilder& builder) {
  const bool leave = std::ranges::any_of(builder.role().stretches, [&](const FlatStretch& stretch) {
    return leaves_as_reduced(builder.scenario(), stretch.group);
  });
  return leave ? last_on(builder.role(), Stream::kCopyOut) : kNoInstruction;
}

CopiesOut copy_gradients_out(RoleBuilder& builder, const StepBlocks& blocks) {
  CopiesOut out;
  if (blocks.host_update.elements == 0) return out;
  out.as_reduced = last_as_reduced(builder);
  const Scenario& scenario = builder.scenario();
  std::int64_t elements = 0;
  StatePart rest;
  rest.count = static_cast<std::int32_t>(pieces_of(scenario));
  for (const FlatStretch& stretch : builder.role().stretches) {
    if (leaves_as_reduced(scenario, stretch.group)) continue;
    if (elements == 0) rest.elements.begin = stretch.range.begin;
    rest.elements.end = stretch.range.end;
    elements += host_elements(scenario, stretch.range.size(), stretch.group);
  }
  for (; elements > 0 && rest.index < rest.count; ++rest.index) {
    const ByteCount bytes =
        part_of(elements, rest.index, scenario) * size_of(scenario.training.grad_precision);
    out.pieces.push_back(builder.copy_states(
        {{CopyDirection::kToHost, bytes}, Purpose::kGradients, rest}, builder.last_run()));
  }
  return out;
}

// The host reads and writes so much where it adds gradients up, micro-batch by micro-batch.
double bytes_of_sums(const RoleBuilder& builder) {
  const Training& training = builder.scenario().training;
  ByteCount added = 0;
  for (const Instruction& what : builder.role().instructions) {
    const auto* copy = what.as<StateCopy>();
    if (copy != nullptr && copy->adds) added += copy->bytes / size_of(training.reduce_precision);
  }
  return 3 * static_cast<double>(added * size_of(training.grad_precision));
}

// Each piece is updated when its gradients are there, and their norm is known. The host issues
// nothing until it is done.
void update_states_on_host(RoleBuilder& builder, const StepBlocks& blocks, const CopiesOut& copied,
                           InstructionIndex norm) {
  const Scenario& scenario = builder.scenario();
  const HostUpdate& all = blocks.host_update;
  if (all.elements == 0) return;
  const double bytes = all.bytes + bytes_of_sums(builder);
  const bool returns = scenario.layout.offload.parameters == 0;
  const bool beside = scenario.layout.overlap.offload;
  const std::int64_t width =
      scenario.rules.offloads_moments ? size_of(DataType::kFp32) : builder.shape().element;
  if (!beside) builder.host_sync(copied.last());
  InstructionIndex last = kNoInstruction;
  StatePart piece{{0, builder.role().parameters}};
  piece.count = static_cast<std::int32_t>(pieces_of(scenario));
  for (; piece.index < piece.count; ++piece.index) {
    const std::int64_t elements = part_of(all.elements, piece.index, scenario);
    const double part = static_cast<double>(elements) / static_cast<double>(all.elements);
    last = builder.update_on_host({elements, bytes * part, all.disk_bytes * part, piece},
                                  copied.as_reduced);
    const auto own = static_cast<std::size_t>(piece.index);
    if (own < copied.pieces.size()) builder.at(last).wait_for(copied.pieces[own]);
    builder.at(last).wait_for(norm);
    if (!beside) builder.host_sync(last);
    if (!returns) continue;
    builder.copy_states(
        {{CopyDirection::kFromHost, elements * width}, Purpose::kParameters, piece}, last);
  }
  if (beside) builder.host_sync(last);
  const InstructionIndex back = returns ? last_on(builder.role(), Stream::kCopyIn) : last;
  builder.at(builder.run_block(blocks.returned)).wait_for(back);
}

// Returns the instruction behind which the norm of all gradients is known.
InstructionIndex find_norm(RoleBuilder& builder, const StepBlocks& blocks) {
  const Scenario& scenario = builder.scenario();
  const InstructionIndex reduced = last_on(builder.role(), Stream::kReduce);
  const InstructionIndex summed_copies = last_on(builder.role(), Stream::kReduceCopies);
  const InstructionIndex left = last_as_reduced(builder);  // the host has the sums
  const InstructionIndex norm = builder.run_block(blocks.gradient_norm);
  for (const InstructionIndex before : {reduced, summed_copies, left}) {
    builder.at(norm).wait_for(before);
  }
  if (scenario.training.grad_clip == GradClip::kNone) return norm;
  const Message sum{CollectiveKind::kAllReduce, size_of(DataType::kFp32), DataType::kFp32};
  const InstructionIndex known = builder.collective(
      "gradient_norm", Stream::kCompute, {Purpose::kGradientNorm, norm_group(scenario), sum});
  // The frameworks read the norm on the host (.item()) to choose the clipping factor. An update
  // that clips by itself reads it on the device.
  if (!scenario.rules.fuses_neighbours) builder.host_sync(known);
  return known;
}

}  // namespace

void arrange_update(RoleBuilder& builder, const StepBlocks& blocks) {
  const Scenario& scenario = builder.scenario();
  const Layout& layout = scenario.layout;
  const Shape& shape = builder.shape();
  const bool ends =
      builder.role().stage == 0 || builder.role().stage == stage_of_last_chunk(layout);
  const DataType type = scenario.training.reduce_precision;
  const InstructionIndex reduced = last_on(builder.role(), Stream::kReduce);
  const InstructionIndex summed_copies = last_on(builder.role(), Stream::kReduceCopies);
  if (shape.sequence_parallel || (shape.tp > 1 && scenario.training.trains_adapters())) {
    // Norms and row-parallel biases saw a part of the sequence on each tensor-parallel rank; the
    // halves of adapters that each rank holds whole saw a part of the features.
    std::int64_t replicated = 0;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(builder.role().chunks.size()); ++c) {
      for (std::int32_t b = 0; b < builder.blocks(c); ++b) {
        replicated += builder.block(c, b).parameters.replicated;
      }
    }
    const Message sum{CollectiveKind::kAllReduce, replicated * size_of(type), type};
    const InstructionIndex summed =
        builder.collective("reduce_replicated_gradients", Stream::kCompute,
                           {Purpose::kReplicatedGradients, AxisGroup::kTensor, sum});
    builder.at(summed).wait_for(reduced);  // they are in the buckets too
    builder.at(summed).wait_for(summed_copies);
  }
  if (ends && !ends_meet(layout) && scenario.shares_trained_table()) {
    const std::int64_t table = shape.table_elements();
    const auto last = static_cast<std::int32_t>(builder.chunks()) - 1;
    const std::int64_t begin = builder.role().stage == 0
                                   ? builder.range(0, 0).begin
                                   : builder.range(last, builder.blocks(last) - 1).begin;
    // Both ends hold the same part of it where gradients are sharded.
    const std::int64_t held = held_gradients(scenario, table, AxisGroup::kData);
    CollectiveCall call{Purpose::kTiedTable,
                        AxisGroup::kEmbedding,
                        {CollectiveKind::kAllReduce, held * size_of(type), type}};
    call.elements = {begin, begin + table};
    const InstructionIndex tied = builder.collective("reduce_tied_table", Stream::kCompute, call);
    builder.at(tied).wait_for(reduced);
    builder.at(tied).wait_for(summed_copies);
  }
  const InstructionIndex norm = find_norm(builder, blocks);
  ByteCount copies = 0;
  for (const FlatStretch& stretch : builder.role().stretches) {
    copies += update_copy_bytes(scenario, stretch.range.size(), stretch.group);
  }
  const CopiesOut left = copy_gradients_out(builder, blocks);
  builder.hold_flat(builder.run_block(blocks.update), copies + blocks.update_workspace);
  update_states_on_host(builder, blocks, left, norm);
}

}  // namespace stepcast
