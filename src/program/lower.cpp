// SPDX-License-Identifier: Apache-2.0
// (model, training, layout) -> program. The only place that knows both transformers and tasks.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/assert.h"
#include "core/work_limits.h"
#include "layout/pipeline.h"
#include "layout/recomputed_layers.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "program/check_step.h"
#include "program/decoder_layer.h"
#include "program/embedding_block.h"
#include "program/flat_stretches.h"
#include "program/head_block.h"
#include "program/offload_activations.h"
#include "program/optimizer.h"
#include "program/persistent_bytes.h"
#include "program/prediction_block.h"
#include "program/sharded_units.h"
#include "program/step.h"
#include "program/unit_copies.h"
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
  std::vector<ByteCount> persistent();

 private:
  BlockId add(Block block) {
    program_.blocks.push_back(std::move(block));
    return BlockId(program_.blocks.size() - 1);
  }
  BlockId layer(LayerKind kind, RecomputeMode mode);
  void lay_out_chunks();
  void finish_role(Role& role);
  BlockId once(BlockKind kind, std::int64_t of, const std::function<Block()>& lower);
  void add_unit_blocks(const RoleBuilder& builder, StepBlocks& blocks);
  ByteCount placeholder_gradients() const;
  ByteCount factored_moments(const Role& role) const;

  const Scenario& scenario_;
  const std::vector<StageOrder>& orders_;
  BackwardForm form_;
  Program program_;
  std::map<std::pair<LayerKind, RecomputeMode>, BlockId> layers_;
  std::map<std::pair<BlockKind, std::int64_t>, BlockId> of_units_;  // of a size
};

BlockId Lowering::layer(LayerKind kind, RecomputeMode mode) {
  const auto found = layers_.find({kind, mode});
  if (found != layers_.end()) return found->second;
  return layers_[{kind, mode}] = add(lower_decoder_layer(scenario_, mode, form_, kind));
}

void Lowering::lay_out_chunks() {
  const Layout& layout = scenario_.layout;
  const std::int64_t last = model_chunks(layout) - 1;
  const std::vector<std::int64_t> dealt = deal_layers(scenario_.model.layers, layout);
  const BlockId embedding = add(lower_embedding(scenario_, form_));
  const bool deferred = layout.defer_head_wgrad > 0;
  const BlockId predictions =
      layout.mtp_apart ? add(lower_predictions(scenario_, form_)) : BlockId{};
  const BlockId head = add(lower_head(scenario_, deferred ? BackwardForm::kSplit : form_));

  std::int64_t first_layer = 0;
  std::vector<Chunk> in_model_order;
  for (std::int64_t c = 0; c <= last; ++c) {
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
    if (layout.mtp_apart && c + 1 == last) chunk.blocks.push_back(predictions);
    if (c == last) chunk.blocks.push_back(head);
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

// The means that Adafactor keeps of each matrix.
ByteCount Lowering::factored_moments(const Role& role) const {
  ByteCount sum = 0;
  for_each_block(program_, role, [&](const Block& block) {
    for (const Parameter& weight : block.weights) {
      if (weight.storage != WeightStorage::kTrained || weight.borrowed) continue;
      sum += weight.copies * factored_bytes(scenario_, weight.rows / weight.copies, weight.columns,
                                            weight.replicas);
    }
  });
  return sum;
}

void Lowering::finish_role(Role& role) {
  const bool root = gradient_mode(scenario_) == GradientMode::kUnit && has_root(scenario_.layout);
  place_parameters(program_, root, role);
  FrozenWeights frozen;
  std::int64_t tables = 0;
  for_each_block(program_, role, [&](const Block& block) {
    for (const Parameter& weight : block.weights) {
      if (weight.in_fp8 && weight.is_table && !weight.borrowed) tables += weight.elements();
      const bool trained = weight.storage == WeightStorage::kTrained;
      if (weight.balances && trained) role.balancing += weight.elements();
    }
    frozen.plain += block.frozen.plain;
    frozen.four_bit += block.frozen.four_bit;
    frozen.in_fp8 += block.frozen.in_fp8;
    role.in_fp8 += block.parameters.in_fp8;
    role.in_fp4 += block.parameters.in_fp4;
  });
  StateBytes states;
  ByteCount outer = 0;
  for (const FlatStretch& stretch : role.stretches) {
    states += state_bytes(scenario_, stretch.range.size(), stretch.group);
    const OffloadedStates moved = offloaded_states(scenario_, stretch.range.size(), stretch.group);
    states.parameters -= moved.saved.parameters;
    states.gradients -= moved.saved.gradients;
    states.optimizer -= moved.saved.optimizer;
    role.on_host += moved.on_host;
    outer += outer_bytes(scenario_, stretch.range.size(), stretch.group);
  }
  if (scenario_.training.outer.host) role.on_host += std::exchange(outer, 0);
  if (scenario_.training.optimizer == Optimizer::kAdafactor) {
    states.optimizer += factored_moments(role);
  }
  ByteCount muon_buffers = 0;
  for (const MuonShare& share : muon_shares(scenario_, program_, role)) {
    states += muon_bytes(scenario_, share.states);
    muon_buffers += reserved_for_muon(scenario_, share);
  }
  const ByteCount frozen_here = frozen_bytes(scenario_, frozen);
  const auto frozen_away = static_cast<ByteCount>(scenario_.layout.offload.parameters *
                                                  static_cast<double>(frozen_here));
  const ByteCount kept_frozen = frozen_here - frozen_away;
  role.on_host += frozen_away;
  role.persistent[static_cast<std::size_t>(MemoryCategory::kParameters)] =
      states.parameters + kept_frozen +
      fp8_weight_bytes(scenario_, role.in_fp8, role.in_fp4, tables);
  role.persistent[static_cast<std::size_t>(MemoryCategory::kGradients)] = states.gradients;
  role.persistent[static_cast<std::size_t>(MemoryCategory::kOptimizer)] = states.optimizer;
  role.persistent[static_cast<std::size_t>(MemoryCategory::kOuter)] = outer;
  role.persistent[static_cast<std::size_t>(MemoryCategory::kWorkspace)] =
      placeholder_gradients() + muon_buffers;
}

BlockId Lowering::once(BlockKind kind, std::int64_t of, const std::function<Block()>& lower) {
  const auto found = of_units_.find({kind, of});
  return found != of_units_.end() ? found->second : of_units_[{kind, of}] = add(lower());
}

// Parts of units that have one size share what casts and copies them.
void Lowering::add_unit_blocks(const RoleBuilder& builder, StepBlocks& blocks) {
  const FrameworkRules& rules = scenario_.rules;
  const bool sums_wide = sums_wide_gradients(scenario_);
  const bool casts = !sums_wide && size_of(scenario_.training.reduce_precision) >
                                       size_of(scenario_.training.wide());
  const auto add_part = [&](std::int64_t elements) {
    if (elements > 0 && casts) {
      blocks.casts[elements] = once(BlockKind::kCastGradients, elements,
                                    [&] { return lower_gradient_cast(scenario_, elements); });
    } else if (elements > 0 && sums_wide) {
      blocks.reduced_copies[elements] = once(
          BlockKind::kCopyUnit, -elements, [&] { return lower_reduced_copy(scenario_, elements); });
    }
  };
  for (const ChunkUnits& chunk : units_of(builder)) {
    for (const Unit& unit : chunk.units) {
      for (const UnitPart& part : unit.parts) add_part(part.range.size());
      const ByteCount bytes = unit.bytes();
      if (bytes == 0 || !rules.keeps_units || !rules.copies_gathered_units) continue;
      blocks.gathered_copies[bytes] =
          once(BlockKind::kCopyUnit, bytes, [&] { return lower_gathered_copy(scenario_, bytes); });
    }
  }
}

Program Lowering::run() {
  lay_out_chunks();
  for (Role& role : program_.roles) {
    end_if_stopped();
    finish_role(role);
    const std::vector<MuonShare> shares = muon_shares(scenario_, program_, role);
    StepBlocks blocks{.zero_gradients = add(lower_zero_gradients(scenario_, role)),
                      .gradient_norm = add(lower_gradient_norm(scenario_, role, shares)),
                      .update = add(lower_update(scenario_, role, shares)),
                      .update_workspace = muon_workspace(scenario_, shares)};
    if (scenario_.layout.offload.optimizer > 0) {
      blocks.host_update = host_update(scenario_, role);
      blocks.returned = add(lower_returned(scenario_, role));
    }
    const bool sharded = gradient_mode(scenario_) == GradientMode::kUnit;
    RoleBuilder builder(scenario_, program_, role);
    if (sharded) add_unit_blocks(builder, blocks);
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

std::vector<ByteCount> Lowering::persistent() {
  lay_out_chunks();
  std::vector<ByteCount> out;
  for (Role& role : program_.roles) {
    finish_role(role);
    out.push_back(total(role.persistent));
  }
  return out;
}

}  // namespace

std::vector<ByteCount> persistent_bytes(const Scenario& scenario) {
  return Lowering(scenario, {}).persistent();
}

Program lower(const Scenario& scenario, const std::vector<StageOrder>& orders) {
  return Lowering(scenario, orders).run();
}

Program lower(const Scenario& scenario) {
  return lower(scenario, make_schedule(scenario.layout, scenario.micro_batches()));
}

}  // namespace stepcast
