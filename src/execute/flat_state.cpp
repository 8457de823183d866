// SPDX-License-Identifier: Apache-2.0
#include "execute/flat_state.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "core/assert.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "program/block_builder.h"
#include "program/flat_stretches.h"
#include "program/sharded_units.h"

namespace stepcast {
namespace {

// A router's bias moves so far in one update (Megatron-LM, --moe-router-bias-update-rate).
constexpr float kBalanceRate = 1e-3F;

// Parts of `range` outside `excluded`.
std::vector<ElementRange> without(ElementRange range, const std::vector<ElementRange>& excluded) {
  std::vector<ElementRange> left{range};
  for (const ElementRange& cut : excluded) {
    std::vector<ElementRange> next;
    for (const ElementRange& part : left) {
      const ElementRange both = common(part, cut);
      if (both.size() == 0) {
        next.push_back(part);
        continue;
      }
      if (part.begin < both.begin) next.push_back({part.begin, both.begin});
      if (both.end < part.end) next.push_back({both.end, part.end});
    }
    left = std::move(next);
  }
  return left;
}

// The bytes of a whole gradient until it is reduced, with the wider copy that is reduced.
ByteCount window_bytes(const Scenario& scenario, DataType type) {
  const std::int64_t wide = size_of(scenario.training.reduce_precision);
  const bool copied = gradient_mode(scenario) == GradientMode::kUnit && wide > size_of(type) &&
                      !sums_wide_gradients(scenario);
  return size_of(type) + (copied ? wide : 0);
}

bool is_shared(const Role& role, const RankGrid& grid) {
  return std::ranges::any_of(role.stretches, [&](const FlatStretch& stretch) {
    return grid.group_size(stretch.group) > 1;
  });
}

DataType parameter_type(const Scenario& scenario) {
  return scenario.rules.bf16_parameters ? scenario.training.wide() : DataType::kFp32;
}
DataType whole_gradient_type(const Scenario& scenario) {
  const Training& training = scenario.training;
  if (gradient_mode(scenario) != GradientMode::kUnit) return training.grad_precision;
  const bool wide = size_of(training.reduce_precision) > size_of(training.wide());
  return wide && sums_wide_gradients(scenario) ? training.reduce_precision : training.wide();
}

// Layer under which a block's weights are named; a tied table, and its copy for prediction modules,
// belongs to the embedding everywhere.
std::int64_t layer_of(const Scenario& scenario, const Program& program, const Chunk& chunk,
                      std::size_t block, const Parameter& parameter) {
  const BlockKind kind = program.block(chunk.blocks[block]).kind;
  if (kind == BlockKind::kEmbedding) return kEmbeddingLayer;
  if (kind == BlockKind::kHead) {
    const bool of_embedding =
        parameter.is_copy || (parameter.is_table && scenario.model.tied_embeddings);
    return of_embedding ? kEmbeddingLayer : kHeadLayer;
  }
  const bool embeds = program.block(chunk.blocks.front()).kind == BlockKind::kEmbedding;
  return chunk.first_layer + static_cast<std::int64_t>(block) - (embeds ? 1 : 0);
}

}  // namespace

std::vector<PlacedParameter> placed_parameters(const Scenario& scenario, const Program& program,
                                               const Role& role) {
  std::vector<PlacedParameter> out;
  // Prediction modules have parameters of the same names: the later ones are in layers of their
  // own.
  std::map<std::string_view, std::int64_t> of_head;
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const Chunk& chunk = role.chunks[c];
    for (std::size_t b = 0; b < chunk.blocks.size(); ++b) {
      const std::vector<Parameter>& weights = program.block(chunk.blocks[b]).weights;
      for (std::size_t w = 0; w < weights.size(); ++w) {
        if (weights[w].borrowed) continue;
        std::int64_t layer = layer_of(scenario, program, chunk, b, weights[w]);
        if (layer == kHeadLayer) layer -= of_head[weights[w].name]++;
        out.push_back({layer, &weights[w], weight_range(program, role, c, b, w)});
      }
    }
  }
  return out;
}

FlatState::FlatState(const Scenario& scenario, const Role& role, const RankGrid& grid, RankId rank,
                     Memory& memory)
    : memory_(memory),
      device_(memory.device),
      shards_states_(scenario.layout.zero >= 1),
      shards_gradients_(scenario.layout.zero >= 2 && is_shared(role, grid)),
      shards_parameters_(gradient_mode(scenario) == GradientMode::kUnit),
      parameters_on_host_(scenario.layout.offload.parameters > 0),
      shards_(role, shards_states_, grid, rank),
      parameter_windows_(memory, scenario.training.wide(), size_of(scenario.training.wide()),
                         Stream::kGather),
      gradient_windows_(memory, whole_gradient_type(scenario),
                        window_bytes(scenario, whole_gradient_type(scenario)), Stream::kCompute) {
  shards_gradients_ = shards_gradients_ || shards_parameters_;
  std::tie(on_host_, on_device_) = shards_.split(scenario.layout.offload.optimizer);
  const std::int64_t whole = role.parameters, own = shards_.elements();
  const DataType type = parameter_type(scenario);
  if (on_host_.elements() > 0) {
    STEPCAST_ASSERT(type == DataType::kFp32, "check_executable() refuses rounded weights there");
    host_.emplace(on_host_.elements(), memory);
    gradients_leave_ = shards_gradients_ && scenario.rules.sums_on_host;
  }
  const std::int64_t kept = shards_parameters_ ? own : whole;
  parameters_ = memory.make(MemoryCategory::kParameters, parameters_on_host_ ? 0 : kept, type);
  gradients_ = memory.make(MemoryCategory::kGradients,
                           shards_gradients_ ? with_gradients().elements() : whole,
                           scenario.training.grad_precision);
  const auto states = [&](const Shards& of) {
    return memory.make(MemoryCategory::kOptimizer, of.elements(), DataType::kFp32);
  };
  moment1_ = states(on_device_);
  moment2_ = states(on_device_);
  if (type != DataType::kFp32) master_ = states(shards_);
  for (const Tensor& moment : {moment1_, moment2_}) {
    device_.zero(moment->array().data, static_cast<std::size_t>(moment->size()));
  }
}

void FlatState::initialise(const Scenario& scenario, const Program& program, const Role& role,
                           std::uint64_t seed, const ModelPart& part,
                           const std::function<void()>& alive) {
  const Fp8 fp8 = fp8_of(scenario);
  if (fp8 && !shards_parameters_) {
    std::vector<Fp8Matrices::Matrix> matrices;
    for (const PlacedParameter& placed : placed_parameters(scenario, program, role)) {
      const Parameter& matrix = *placed.parameter;
      if (!matrix.in_fp8) continue;
      matrices.push_back({placed.range, matrix.rows, matrix.columns});
    }
    fp8_matrices_.emplace(std::move(matrices), fp8.has_two_copies(), memory_);
  }
  std::vector<float> whole;
  for (const PlacedParameter& placed : placed_parameters(scenario, program, role)) {
    if (alive) alive();
    if (placed.parameter->balances) balancing_.push_back(placed.range);
    whole.resize(static_cast<std::size_t>(placed.range.size()));
    initial_weights(seed, placed.layer, *placed.parameter, part, whole.data());
    set_weights(placed.range, whole);
  }
}

// Every rank holds the rounded weights whole, unless they are sharded, and its own ones exactly.
void FlatState::set_weights(ElementRange range, const std::vector<float>& whole) {
  Memory scratch(device_, false);
  const Tensor exact = scratch.make_uncounted(range.size(), DataType::kFp32);
  device_.upload(exact->array().data, whole.data(), whole.size() * sizeof(float));
  if (!shards_parameters_) {
    kernels().copy(exact->array(), parameters_->array().from(range.begin), range.size());
  }
  for (const OwnedPiece& piece : on_host_.within(range)) {
    std::copy_n(whole.begin() + (piece.range.begin - range.begin), piece.range.size(),
                host_->weights(piece.offset).as<float>());
  }
  if (parameters_on_host_) return;
  for (const OwnedPiece& piece : shards_.within(range)) {
    const Array own = exact->array().from(piece.range.begin - range.begin);
    if (shards_parameters_) kernels().copy(own, owned_parameters(piece), piece.range.size());
    if (master_) kernels().copy(own, owned_weights(piece), piece.range.size());
  }
}

Array FlatState::parameters(std::int64_t element) {
  return shards_parameters_ ? parameter_windows_.at(element) : parameters_->array().from(element);
}

Array FlatState::gradients(std::int64_t element) {
  return shards_gradients_ ? gradient_windows_.at(element) : gradients_->array().from(element);
}

GradientPlace FlatState::gradient(ElementRange parameter) {
  const bool fresh = shards_gradients_ && gradient_windows_.is_fresh(parameter);
  return {gradients(parameter.begin), fresh};
}

Array FlatState::owned_parameters(const OwnedPiece& piece) {
  const std::int64_t begin = piece.range.begin;
  return parameters_->array().from(shards_parameters_ ? shards_.offset_of(begin) : begin);
}

Array FlatState::owned_gradients(const OwnedPiece& piece) {
  const std::int64_t begin = piece.range.begin;
  return gradients_->array().from(shards_gradients_ ? with_gradients().offset_of(begin) : begin);
}

Array FlatState::owned_weights(const OwnedPiece& piece) {
  return master_ ? master_->array().from(shards_.offset_of(piece.range.begin))
                 : owned_parameters(piece);
}

std::vector<float> FlatState::weights_on_host(const OwnedPiece& piece) {
  std::vector<float> out(static_cast<std::size_t>(piece.range.size()));
  if (parameters_on_host_) {
    const std::int64_t place = on_host_.offset_of(piece.range.begin);
    std::copy_n(host_->weights(place).as<const float>(), out.size(), out.begin());
    return out;
  }
  device_.download(out.data(), owned_weights(piece).data, out.size() * sizeof(float));
  return out;
}

void FlatState::add_to_shard(ElementRange range, Array whole, Array leaving) {
  for (const OwnedPiece& piece : with_gradients().within(range)) {
    kernels().accumulate(whole.from(piece.range.begin - range.begin), owned_gradients(piece),
                         piece.range.size());
  }
  if (!gradients_leave_) return;
  for (const OwnedPiece& piece : on_host_.within(range)) {
    kernels().copy(whole.from(piece.range.begin - range.begin), leaving, piece.range.size());
    leaving = leaving.from(piece.range.size());
  }
}

void FlatState::copy_to_window(ElementRange range, Array whole, Array shard) {
  for (const OwnedPiece& piece : shards_.within(range)) {
    const Array from = parameters_on_host_ ? shard : owned_parameters(piece);
    kernels().copy(from, whole.from(piece.range.begin - range.begin), piece.range.size());
    if (parameters_on_host_) shard = shard.from(piece.range.size());
  }
}

std::vector<OwnedPiece> FlatState::on_host(const StatePart& part) const {
  const std::vector<OwnedPiece> all = on_host_.within(part.elements);
  if (all.empty()) return {};
  const std::int64_t first = all.front().offset;
  const std::int64_t count = all.back().offset + all.back().range.size() - first;
  const std::int64_t begin = first + count * part.index / part.count;
  const std::int64_t end = first + count * (part.index + 1) / part.count;
  std::vector<OwnedPiece> out;
  for (const auto& [range, offset] : all) {
    const ElementRange own = common({offset, offset + range.size()}, {begin, end});
    if (own.size() == 0) continue;
    const std::int64_t skipped = own.begin - offset;
    out.push_back({{range.begin + skipped, range.begin + skipped + own.size()}, own.begin});
  }
  return out;
}

void FlatState::zero_gradients() {
  device_.zero(gradients_->array().data, static_cast<std::size_t>(gradients_->size()));
}

void FlatState::add_squares(const std::vector<ElementRange>& excluded, double* total) {
  for (const OwnedPiece& piece : with_gradients().pieces()) {
    for (const ElementRange& part : without(piece.range, excluded)) {
      const Array begin = owned_gradients(piece).from(part.begin - piece.range.begin);
      kernels().add_squares(begin, part.size(), total);
    }
  }
  if (!gradients_leave_) return;
  double sum = 0;
  device_.download(&sum, total, sizeof(sum));
  for (const OwnedPiece& piece : on_host_.pieces()) {
    for (const ElementRange& part : without(piece.range, excluded)) {
      sum += host_->squares(piece.offset + part.begin - piece.range.begin, part.size());
    }
  }
  device_.upload(total, &sum, sizeof(sum));
}

void FlatState::scale_gradients(float factor) {
  for (const OwnedPiece& piece : on_device_.pieces()) {
    kernels().scale(owned_gradients(piece), factor, piece.range.size());
  }
}

void FlatState::update(const AdamW& settings, std::int64_t step, const float* squared_norm,
                       bool rounds) {
  for (const OwnedPiece& piece : on_device_.pieces()) {
    for (const ElementRange& part : without(piece.range, balancing_)) {
      const std::int64_t from = part.begin - piece.range.begin;
      kernels().adamw({.settings = settings,
                       .step = step,
                       .squared_norm = squared_norm,
                       .gradient = owned_gradients(piece).from(from),
                       .weight = owned_weights(piece).from(from),
                       .moment1 = moment1_->array().from(piece.offset + from),
                       .moment2 = moment2_->array().from(piece.offset + from),
                       .rounded = rounds ? owned_parameters(piece).from(from) : Array{},
                       .count = part.size()});
    }
  }
}

void FlatState::balance(bool rounds) {
  for (const ElementRange& range : balancing_) {
    for (const OwnedPiece& piece : shards_.within(range)) {
      kernels().variants().step_by_sign({.gradient = owned_gradients(piece),
                                         .weight = owned_weights(piece),
                                         .rounded = rounds ? owned_parameters(piece) : Array{},
                                         .rate = kBalanceRate,
                                         .count = piece.range.size()});
    }
  }
}

void FlatState::round_weights() {
  for (const OwnedPiece& piece : shards_.pieces()) {
    kernels().copy(owned_weights(piece), owned_parameters(piece), piece.range.size());
  }
}

}  // namespace stepcast
