// SPDX-License-Identifier: Apache-2.0
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
  builder.hold_flat(builder.run_block(blocks.update), copies + blocks.update_workspace);
}

}  // namespace stepcast
