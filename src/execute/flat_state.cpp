// SPDX-License-Identifier: Apache-2.0
#include "execute/flat_state.h"

#include <algorithm>
#include <cstring>

#include "execute/initial_weights.h"
#include "memory/states.h"
#include "program/block_builder.h"

namespace stepcast {
namespace {

Tensor states(Memory& memory, MemoryCategory category, std::int64_t elements) {
  return memory.make(category, elements * static_cast<ByteCount>(sizeof(float)));
}

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

}  // namespace

std::int64_t layer_of(const Scenario& scenario, const Program& program, const Chunk& chunk,
                      std::size_t block, const Parameter& parameter) {
  const std::string& name = program.block(chunk.blocks[block]).name;
  if (name == "embedding") return kEmbeddingLayer;
  if (name == "head") {
    const bool table = std::string_view(parameter.name) == "table";
    return table && scenario.model.tied_embeddings ? kEmbeddingLayer : kHeadLayer;
  }
  const bool embeds = program.block(chunk.blocks.front()).name == "embedding";
  return chunk.first_layer + static_cast<std::int64_t>(block) - (embeds ? 1 : 0);
}

std::vector<PlacedParameter> placed_parameters(const Scenario& scenario, const Program& program,
                                               const Role& role) {
  std::vector<PlacedParameter> out;
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const Chunk& chunk = role.chunks[c];
    for (std::size_t b = 0; b < chunk.blocks.size(); ++b) {
      std::int64_t at = role.offsets[c][b];
      for (const Parameter& parameter : program.block(chunk.blocks[b]).weights) {
        if (parameter.borrowed) continue;
        out.push_back({layer_of(scenario, program, chunk, b, parameter),
                       &parameter,
                       {at, at + parameter.elements()}});
        at += parameter.elements();
      }
    }
  }
  return out;
}

FlatState::FlatState(const Scenario& scenario, const Role& role, int data_ranks, int data_rank,
                     Memory& memory)
    : shards_states_(scenario.layout.zero >= 1),
      shards_gradients_(scenario.layout.zero >= 2 && data_ranks > 1),
      shards_parameters_(gradient_mode(scenario) == GradientMode::kUnit),
      shards_(role, shards_states_, data_ranks, data_rank),
      parameter_windows_(memory),
      gradient_windows_(memory) {
  shards_gradients_ = shards_gradients_ || shards_parameters_;
  const std::int64_t whole = role.parameters, own = shards_.elements();
  parameters_ = states(memory, MemoryCategory::kParameters, shards_parameters_ ? own : whole);
  gradients_ = states(memory, MemoryCategory::kGradients, shards_gradients_ ? own : whole);
  moment1_ = states(memory, MemoryCategory::kOptimizer, own);
  moment2_ = states(memory, MemoryCategory::kOptimizer, own);
}

void FlatState::initialise(const Scenario& scenario, const Program& program, const Role& role,
                           std::uint64_t seed, std::int64_t tp_rank) {
  std::vector<float> whole;
  for (const PlacedParameter& placed : placed_parameters(scenario, program, role)) {
    whole.resize(static_cast<std::size_t>(placed.range.size()));
    initial_weights(seed, placed.layer, *placed.parameter, scenario.layout.tp, tp_rank,
                    whole.data());
    if (!shards_parameters_) {
      std::copy(whole.begin(), whole.end(), parameters_->floats() + placed.range.begin);
      continue;
    }
    for (const OwnedPiece& piece : shards_.within(placed.range)) {
      std::copy_n(whole.data() + (piece.range.begin - placed.range.begin), piece.range.size(),
                  parameters_->floats() + piece.offset);
    }
  }
}

float* FlatState::parameters(std::int64_t element) {
  return shards_parameters_ ? parameter_windows_.at(element) : parameters_->floats() + element;
}

float* FlatState::gradients(std::int64_t element) {
  return shards_gradients_ ? gradient_windows_.at(element) : gradients_->floats() + element;
}

GradientPlace FlatState::gradient(ElementRange parameter) {
  const bool fresh = shards_gradients_ && gradient_windows_.is_fresh(parameter);
  return {gradients(parameter.begin), fresh};
}

float* FlatState::owned_parameters(const OwnedPiece& piece) {
  return parameters_->floats() + (shards_parameters_ ? piece.offset : piece.range.begin);
}

float* FlatState::owned_gradients(const OwnedPiece& piece) {
  return gradients_->floats() + (shards_gradients_ ? piece.offset : piece.range.begin);
}

void FlatState::add_to_shard(ElementRange range, const float* whole) {
  for (const OwnedPiece& piece : shards_.within(range)) {
    cpu::accumulate<float>(whole + (piece.range.begin - range.begin), owned_gradients(piece),
                           piece.range.size());
  }
}

void FlatState::copy_to_window(ElementRange range, float* whole) {
  for (const OwnedPiece& piece : shards_.within(range)) {
    std::copy_n(owned_parameters(piece), piece.range.size(),
                whole + (piece.range.begin - range.begin));
  }
}

void FlatState::zero_gradients() {
  std::memset(gradients_->floats(), 0, static_cast<std::size_t>(gradients_->size()));
}

double FlatState::sum_of_squares(const std::vector<ElementRange>& excluded) {
  double sum = 0;
  for (const OwnedPiece& piece : shards_.pieces()) {
    for (const ElementRange& part : without(piece.range, excluded)) {
      const float* begin = owned_gradients(piece) + (part.begin - piece.range.begin);
      sum += cpu::sum_of_squares(begin, part.size());
    }
  }
  return sum;
}

void FlatState::scale_gradients(float factor) {
  for (const OwnedPiece& piece : shards_.pieces()) {
    cpu::scale(owned_gradients(piece), factor, piece.range.size());
  }
}

void FlatState::update(const cpu::AdamW& settings, std::int64_t step) {
  for (const OwnedPiece& piece : shards_.pieces()) {
    cpu::adamw<float>(settings, step, owned_gradients(piece), owned_parameters(piece),
                      moment1_->floats() + piece.offset, moment2_->floats() + piece.offset,
                      piece.range.size());
  }
}

}  // namespace stepcast
