// SPDX-License-Identifier: Apache-2.0
// (model, training, layout) -> program. The only place that knows both transformers and tasks.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/assert.h"
#include "layout/pipeline.h"
#include "layout/recomputed_layers.h"
#include "memory/states.h"
#include "program/check_step.h"
#include "program/decoder_layer.h"
#include "program/embedding_block.h"
#include "program/flat_stretches.h"
#include "program/head_block.h"
#include "program/offload_activations.h"
#include "program/optimizer.h"
#include "program/step.h"
#include "program/walk.h"

namespace stepcast {
namespace {

BackwardForm form_of(const std::vector<StageOrder>& orders) {
  for (const StageOrder& order : orders) {
    for (const Slot& slot : order) {
      if (slot.pass == Pass::kWeightGradient) return BackwardForm::kSplit;
    }
  }
  return BackwardForm::kWhole;
}

class Lowering {
 public:
  Lowering(const Scenario& scenario, const std::vector<StageOrder>& orders)
      : scenario_(scenario), orders_(orders), form_(form_of(orders)) {}
  Program run();

 private:
  BlockId add(Block block) {
    program_.blocks.push_back(std::move(block));
    return BlockId(program_.blocks.size() - 1);
  }
  BlockId layer(LayerKind kind, RecomputeMode mode);
  void lay_out_chunks();
  void finish_role(Role& role);
  void add_casts(const Role& role, StepBlocks& blocks);
  ByteCount placeholder_gradients() const;

  const Scenario& scenario_;
  const std::vector<StageOrder>& orders_;
  BackwardForm form_;
  Program program_;
  std::map<std::pair<LayerKind, RecomputeMode>, BlockId> layers_;
};

BlockId Lowering::layer(LayerKind kind, RecomputeMode mode) {
  const auto found = layers_.find({kind, mode});
  if (found != layers_.end()) return found->second;
  return layers_[{kind, mode}] = add(lower_decoder_layer(scenario_, mode, form_, kind));
}

void Lowering::lay_out_chunks() {
  const Layout& layout = scenario_.layout;
  const std::int64_t model_chunks = layout.pp * layout.virtual_stages;
  const std::vector<std::int64_t> dealt = deal_layers(scenario_.model.layers, layout);
  const BlockId embedding = add(lower_embedding(scenario_, form_));
  const bool deferred = layout.defer_head_wgrad > 0;
  const BlockId head = add(lower_head(scenario_, deferred ? BackwardForm::kSplit : form_));

  std::int64_t first_layer = 0;
  std::vector<Chunk> in_model_order;
  for (std::int64_t c = 0; c < model_chunks; ++c) {
    Chunk chunk;
    chunk.model_chunk = c;
    chunk.first_layer = first_layer;
    if (c == 0) chunk.blocks.push_back(embedding);
    const std::int64_t count = dealt[static_cast<std::size_t>(c)];
    for (std::int64_t i = 0; i < count; ++i) {
      chunk.blocks.push_back(layer(kind_of(scenario_, first_layer + i),
                                   recompute_of(layout.recompute, first_layer + i, i)));
    }
    first_layer += count;
    if (c == model_chunks - 1) chunk.blocks.push_back(head);
    in_model_order.push_back(std::move(chunk));
  }
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    Role role;
    role.stage = static_cast<std::int32_t>(stage);
    for (std::int64_t v = 0; v < layout.virtual_stages; ++v) {
      role.chunks.push_back(in_model_order[static_cast<std::size_t>(chunk_of(layout, stage, v))]);
    }
    program_.roles.push_back(std::move(role));
  }
}

// Transformer Engine hands autograd a placeholder for each weight gradient that its GEMM has added
// into the main gradient, and keeps one per weight shape for the whole run (get_dummy_wgrad in
// transformer_engine/pytorch/utils.py). Its layers are the ones with fused attention. Experts share
// one for each of their two shapes.
ByteCount Lowering::placeholder_gradients() const {
  const bool engine = gradient_mode(scenario_) == GradientMode::kFused &&
                      scenario_.rules.placeholder_gradients &&
                      scenario_.training.attention == AttentionKernel::kFlash;
  if (!engine || layers_.empty()) return 0;
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  std::int64_t elements = 0;
  for (const auto& [key, id] : layers_) {
    const Block& block = program_.block(id);
    std::set<std::pair<std::int64_t, std::int64_t>> own;
    for (const Parameter& weight : block.weights) {
      const bool is_whole = weight.cut == Cut::kNone && weight.replicas == AxisGroup::kData;
      if (weight.storage != WeightStorage::kTrained || is_whole) continue;
      const std::pair<std::int64_t, std::int64_t> shape{weight.rows / weight.copies,
                                                        weight.columns};
      if (!shapes.contains(shape)) elements += shape.first * shape.second;
      own.insert(shape);
    }
    shapes.merge(own);
  }
  return elements * size_of(scenario_.training.wide());
}

void Lowering::finish_role(Role& role) {
  place_parameters(program_, gradient_mode(scenario_) == GradientMode::kUnit, role);
  FrozenWeights frozen;
  for_each_block(program_, role, [&](const Block& block) {
    frozen.plain += block.frozen.plain;
    frozen.four_bit += block.frozen.four_bit;
    frozen.in_fp8 += block.frozen.in_fp8;
    role.in_fp8 += block.parameters.in_fp8;
  });
  StateBytes states;
  for (const FlatStretch& stretch : role.stretches) {
    states += state_bytes(scenario_, stretch.range.size(), stretch.group);
  }
  role.persistent[static_cast<std::size_t>(MemoryCategory::kParameters)] =
      states.parameters + frozen_bytes(scenario_, frozen) +
      fp8_weight_bytes(scenario_, role.in_fp8);
  role.persistent[static_cast<std::size_t>(MemoryCategory::kGradients)] = states.gradients;
  role.persistent[static_cast<std::size_t>(MemoryCategory::kOptimizer)] = states.optimizer;
  role.persistent[static_cast<std::size_t>(MemoryCategory::kWorkspace)] = placeholder_gradients();
}

// A unit is a layer, the root all the rest. Layers of one size share a cast.
void Lowering::add_casts(const Role& role, StepBlocks& blocks) {
  std::map<std::int64_t, BlockId> by_elements;
  const auto cast = [&](std::int64_t elements) {
    const auto [known, added] = by_elements.try_emplace(elements);
    if (added) known->second = add(lower_gradient_cast(scenario_, elements));
    return known->second;
  };
  const std::vector<BlockId>& units = role.chunks.front().blocks;
  blocks.cast_units.resize(units.size());
  std::int64_t root = role.parameters;
  for (std::size_t i = 1; i + 1 < units.size(); ++i) {
    const std::int64_t elements = program_.block(units[i]).parameters.total();
    blocks.cast_units[i] = cast(elements);
    root -= elements;
  }
  if (root > 0) blocks.cast_root = cast(root);
}

Program Lowering::run() {
  lay_out_chunks();
  for (Role& role : program_.roles) {
    finish_role(role);
    StepBlocks blocks{add(lower_zero_gradients(scenario_, role)),
                      add(lower_gradient_norm(scenario_, role)),
                      add(lower_update(scenario_, role)),
                      {},
                      {}};
    const bool sharded = gradient_mode(scenario_) == GradientMode::kUnit;
    if (sharded &&
        size_of(scenario_.training.reduce_precision) > size_of(scenario_.training.wide())) {
      add_casts(role, blocks);
    }
    RoleBuilder builder(scenario_, program_, role);
    const StageOrder& order = orders_[static_cast<std::size_t>(role.stage)];
    role.instructions.reserve(order.size() * 4 + 16);
    if (sharded) {
      arrange_sharded_step(builder, order, blocks);
    } else {
      arrange_replicated_step(builder, order, blocks);
    }
    if (scenario_.layout.offload.activations > 0) offload_activations(scenario_, program_, role);
    const std::optional<std::string> fault = fault_of(program_, role);
    STEPCAST_ASSERT(!fault, fault->c_str());
  }
  return std::move(program_);
}

}  // namespace

Program lower(const Scenario& scenario, const std::vector<StageOrder>& orders) {
  return Lowering(scenario, orders).run();
}

Program lower(const Scenario& scenario) {
  return lower(scenario, make_schedule(scenario.layout, scenario.micro_batches()));
}

}  // namespace stepcast
