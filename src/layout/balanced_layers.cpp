// SPDX-License-Identifier: Apache-2.0
#include "layout/balanced_layers.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "layout/pipeline.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

// The work of the head and its losses in layers, per token. What is recomputed is computed once
// more in backward.
double head_in_layers(const Scenario& s) {
  const Model& model = s.model;
  const LayerParameters layer = count_layer(model, model.layers - 1);
  const double weights = static_cast<double>(layer.attention + layer.mlp + layer.experts_active);
  // A causal token meets half of the others, with its scores and with its values.
  const double width = static_cast<double>(model.heads * model.head_dim);
  const double attention = 2 * static_cast<double>(s.training.sequence_length) * width;
  const double passes = s.layout.recompute.mode == RecomputeMode::kFull ? 4 : 3;
  const double head = 2 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab);
  const double modules = static_cast<double>(model.mtp_layers);
  return 3 * head * (1 + modules) / (passes * (2 * weights + attention));
}

}  // namespace

std::vector<std::int64_t> balanced_layers(const Scenario& s) {
  Layout even = s.layout;
  even.stage_layers.clear();
  const std::int64_t chunks = model_chunks(even);
  if (s.layout.pp < 2 || s.model.layers < chunks) return {};  // legality names what is wrong
  if (feeds_both_ends(even)) return deal_layers(s.model.layers, even);
  // Only the chunks with embedding, head or prediction modules may be without layers.
  std::vector<std::int64_t> dealt(static_cast<std::size_t>(chunks), 1);
  const std::int64_t of_modules = chunks - (s.layout.mtp_apart ? 2 : 1);
  dealt.front() = dealt.back() = dealt[static_cast<std::size_t>(of_modules)] = 0;
  std::vector<double> load(static_cast<std::size_t>(s.layout.pp), 0);
  std::vector<std::vector<std::size_t>> of_stage(load.size());
  for (std::size_t c = 0; c < dealt.size(); ++c) {
    const std::int64_t stage = stage_of_chunk(even, static_cast<std::int64_t>(c));
    of_stage[static_cast<std::size_t>(stage)].push_back(c);
    load[static_cast<std::size_t>(stage)] += static_cast<double>(dealt[c]);
  }
  load[static_cast<std::size_t>(stage_of_last_chunk(even))] += head_in_layers(s);
  load[static_cast<std::size_t>(stage_of_chunk(even, of_modules))] +=
      static_cast<double>(s.model.mtp_layers);
  const std::int64_t held = std::accumulate(dealt.begin(), dealt.end(), std::int64_t{0});
  for (std::int64_t left = s.model.layers - held; left > 0; --left) {
    const auto stage = static_cast<std::size_t>(std::ranges::min_element(load) - load.begin());
    const auto fewest = std::ranges::min_element(of_stage[stage], {},
                                                 [&](std::size_t chunk) { return dealt[chunk]; });
    ++dealt[*fewest];
    load[stage] += 1;
  }
  return dealt;
}

}  // namespace stepcast
