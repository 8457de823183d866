// SPDX-License-Identifier: Apache-2.0
#include "program/layer_kind.h"

#include <set>

#include "layout/scenario.h"
#include "layout/training.h"
#include "model/model.h"

namespace stepcast {

LayerKind kind_of(const Scenario& scenario, std::int64_t layer) {
  const Model& model = scenario.model;
  const bool short_window = model.attention_window < scenario.training.sequence_length;
  const Training& training = scenario.training;
  const bool wide =
      layer < training.first_layers_16_bits || layer >= model.layers - training.last_layers_16_bits;
  return {model.is_moe_layer(layer), short_window && model.is_windowed(layer),
          wide && is_scaled(training.precision)};
}

std::vector<LayerKind> layer_kinds(const Scenario& scenario) {
  std::set<LayerKind> found;
  for (std::int64_t layer = 0; layer < scenario.model.layers; ++layer) {
    found.insert(kind_of(scenario, layer));
  }
  return {found.begin(), found.end()};
}

}  // namespace stepcast
