// SPDX-License-Identifier: Apache-2.0
// The checks of validate_args (megatron/training/arguments.py) and of TransformerConfig that a
// legal scenario can still fail. What stepcast's own legality already says is not said twice.
#include <fmt/format.h>

#include "core/data_type.h"

#include "layout/layout.h"
#include "layout/scenario.h"
#include "layout/training.h"
#include "model/model.h"
#include "recipes/megatron.h"
#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

void add(Errors& errors, std::string path, std::string message, std::string hint) {
  errors.push_back({ErrorCode::kIllegal, "Megatron refuses " + std::move(message), "",
                    std::move(path), std::move(hint)});
}

}  // namespace

Errors check_megatron(const Scenario& s) {
  Errors errors;
  const Layout& l = s.layout;
  if (s.model.max_positions < s.training.sequence_length) {
    add(errors, "model.max_positions",
        fmt::format("{} positions for sequences of {}", s.model.max_positions,
                    s.training.sequence_length),
        fmt::format("at least {}", s.training.sequence_length));
  }
  if (l.schedule == schedule_named("interleaved") && l.pp == 2 && !l.overlap.pp) {
    add(errors, "layout.overlap.pp", "interleaved on 2 stages without overlapped transfers",
        "pp 3 or more, or overlap.pp true");
  }
  if (l.overlap.ep && l.pp > 1 && l.schedule != schedule_named("interleaved")) {
    add(errors, "layout.overlap.ep",
        fmt::format("exchanges beside another micro-batch under schedule {}",
                    rules_of(l.schedule).name),
        "schedule interleaved, or overlap.ep false");
  }
  if (s.training.fp4_products != Fp4Products::kAll) {
    add(errors, "training.fp4_products", "fp4 beside fp8", "all");
  }
  if (s.training.precision == DataType::kFp8 && s.training.fp8_recipe == "rowwise") {
    add(errors, "training.fp8_recipe", "the fp8 recipe rowwise",
        "delayed, current, mxfp8 or blockwise");
  }
  if (l.ep > 1 && s.training.precision == DataType::kFp16) {
    add(errors, "training.precision", "expert parallelism in fp16", "bf16");
  }
  if (s.model.mtp_layers > 0 && s.model.position != Position::kRope &&
      s.model.position != Position::kNone) {
    add(errors, "model.mtp_layers", "multi-token prediction without rotary positions",
        "position rope or none");
  }
  if (s.training.cuda_graphs != CudaGraphs::kOff && l.recompute.mode == RecomputeMode::kFull) {
    add(errors, "training.cuda_graphs", "CUDA graphs with full recompute",
        "recompute selective or none");
  }
  return errors;
}

}  // namespace stepcast
