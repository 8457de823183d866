// SPDX-License-Identifier: Apache-2.0
// One decoder layer (GPT or Llama form, or with experts or latent attention) as operations, forward
// and backward, with tensor and sequence parallelism (Shoeybi et al. 2019; Korthikanti et al. 2022)
// and recomputation.
#pragma once

#include "layout/layout.h"
#include "program/block.h"
#include "program/layer_kind.h"

namespace stepcast {

struct Scenario;

Block lower_decoder_layer(const Scenario& scenario, RecomputeMode recompute,
                          BackwardForm form = BackwardForm::kWhole, LayerKind kind = {});

}  // namespace stepcast
