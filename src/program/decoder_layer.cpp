// SPDX-License-Identifier: Apache-2.0
#include "program/decoder_layer.h"

#include <algorithm>
#include <span>
#include <vector>

#include "layout/scenario.h"
#include "program/block_builder.h"
#include "program/fp8_operands.h"
#include "program/layer_lowering.h"
#include "program/liveness.h"
#include "program/unit_copies.h"

namespace stepcast {
namespace {

// PyTorch ends the second forward as soon as all that backward reads is there again
// (torch.utils.checkpoint, set_checkpoint_early_stop): the operations at its end whose results
// nobody reads do not run. It is the first `count` operations of the first backward pass.
void stop_early(Block& block, std::size_t count) {
  std::vector<bool> read(block.buffers.size(), false);
  const std::span<const Pass> backward = passes_of(block.form).subspan(1);
  std::size_t first = count;
  for (const Pass pass : backward) {
    const std::vector<Operation>& operations = block.pass(pass).operations;
    for (std::size_t i = first; i < operations.size(); ++i) {
      for (const BufferId id : operations[i].reads) read[id.index()] = true;
    }
    first = 0;
  }
  std::vector<Operation>& operations = block.pass(backward.front()).operations;
  const auto is_read = [&](BufferId id) { return read[id.index()]; };
  std::size_t kept = count;
  while (kept > 0 && std::ranges::none_of(operations[kept - 1].writes, is_read)) --kept;
  const auto begin = operations.begin();
  operations.erase(begin + static_cast<std::ptrdiff_t>(kept),
                   begin + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

Block lower_decoder_layer(const Scenario& scenario, RecomputeMode recompute, BackwardForm form,
                          LayerKind kind) {
  Block block;
  block.form = form;
  block.kind = BlockKind::kLayer;
  const Shape shape(scenario);
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  LayerLowering layer(scenario, kind, builder);
  const std::int64_t elements = shape.rows * shape.hidden;
  block.input = builder.activation("layer_input", elements);
  block.output_gradient = builder.activation("output_gradient", elements);

  builder.into(Pass::kForward, Phase::kForward);
  copy_gathered_unit(scenario, builder);
  block.output = layer.forward(block.input, recompute);

  if (recompute == RecomputeMode::kFull) layer.recompute();
  const std::size_t again = block.pass(passes_of(form)[1]).operations.size();
  builder.into_input_gradients();
  if (scenario.layout.zero == 3) copy_gathered_unit(scenario, builder);
  block.input_gradient = layer.backward(block.output_gradient, recompute);
  copy_unit_gradients(scenario, builder);
  cast_in_norms(builder);
  if (again > 0 && scenario.training.early_stop) stop_early(block, again);
  finish_block(block);
  return block;
}

}  // namespace stepcast
