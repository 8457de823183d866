// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "layout/pipeline.h"
#include "memory/states.h"
#include "program/step.h"

namespace stepcast {
namespace {

InstructionIndex last_on(const Role& role, Stream stream) {
  for (auto i = static_cast<InstructionIndex>(role.instructions.size()); i-- > 0;) {
    if (role.instructions[static_cast<std::size_t>(i)].stream == stream) return i;
  }
  return kNone;
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

// ZeRO's optimizers and FSDP move shards of gradients as they are reduced.
bool leave_as_reduced(const Scenario& scenario) {
  return scenario.rules.sums_on_host && scenario.layout.zero >= 2;
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

// Gradients of offloaded states leave, unless they left as they were reduced: their last copies.
std::vector<InstructionIndex> copy_gradients_out(RoleBuilder& builder, const StepBlocks& blocks) {
  const Scenario& scenario = builder.scenario();
  const std::int64_t elements = blocks.host_update.elements;
  if (elements == 0) return {};
  if (leave_as_reduced(scenario)) return {last_on(builder.role(), Stream::kCopyOut)};
  std::vector<InstructionIndex> out;
  for (std::int64_t i = 0; i < pieces_of(scenario); ++i) {
    const ByteCount bytes =
        part_of(elements, i, scenario) * size_of(scenario.training.grad_precision);
    out.push_back(builder.copy_states(CopyDirection::kToHost, Purpose::kGradients, bytes,
                                      builder.last_run()));
  }
  return out;
}

// Each piece is updated when its gradients are there. The host issues nothing until it is done.
void update_states_on_host(RoleBuilder& builder, const StepBlocks& blocks,
                           const std::vector<InstructionIndex>& copied) {
  const Scenario& scenario = builder.scenario();
  const HostUpdate& all = blocks.host_update;
  if (all.elements == 0) return;
  const bool returns = scenario.layout.offload.parameters == 0;
  const std::int64_t width =
      scenario.rules.offloads_moments ? size_of(DataType::kFp32) : builder.shape().element;
  if (!scenario.layout.overlap.offload) builder.host_sync(copied.back());
  InstructionIndex last = kNone;
  std::vector<InstructionIndex> updated;
  for (std::int64_t i = 0; i < pieces_of(scenario); ++i) {
    const std::int64_t elements = part_of(all.elements, i, scenario);
    const double part = static_cast<double>(elements) / static_cast<double>(all.elements);
    const std::size_t from = std::min(static_cast<std::size_t>(i), copied.size() - 1);
    updated.push_back(
        builder.update_on_host({elements, all.bytes * part, all.disk_bytes * part}, copied[from]));
    if (!scenario.layout.overlap.offload) builder.host_sync(updated.back());
    if (!returns) continue;
    last = builder.copy_states(CopyDirection::kFromHost, Purpose::kParameters, elements * width,
                               updated.back());
  }
  if (scenario.layout.overlap.offload) builder.host_sync(updated.back());
  const InstructionIndex end = builder.run_block(blocks.returned);
  builder.at(end).wait_for(last == kNone ? updated.back() : last);
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
  const InstructionIndex norm = builder.run_block(blocks.gradient_norm);
  builder.at(norm).wait_for(reduced);
  builder.at(norm).wait_for(summed_copies);
  if (scenario.training.grad_clip != GradClip::kNone) {
    const Message sum{CollectiveKind::kAllReduce, size_of(DataType::kFp32), DataType::kFp32};
    const InstructionIndex summed = builder.collective(
        "gradient_norm", Stream::kCompute, {Purpose::kGradientNorm, norm_group(scenario), sum});
    // The frameworks read the norm on the host (.item()) to choose the clipping factor. An update
    // that clips by itself reads it on the device.
    if (!scenario.rules.fuses_neighbours) builder.host_sync(summed);
  }
  ByteCount copies = 0;
  for (const FlatStretch& stretch : builder.role().stretches) {
    copies += update_copy_bytes(scenario, stretch.range.size(), stretch.group);
  }
  const auto left = copy_gradients_out(builder, blocks);
  builder.hold_flat(builder.run_block(blocks.update), copies + blocks.update_workspace);
  update_states_on_host(builder, blocks, left);
}

}  // namespace stepcast
