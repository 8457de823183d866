// SPDX-License-Identifier: Apache-2.0
#include "program/executable.h"

#include <fmt/format.h>

#include "layout/choices.h"
#include "program/block_builder.h"

namespace stepcast {

Errors check_executable(const Scenario& scenario) {
  Errors errors;
  const auto refuse = [&](const char* path, std::string what, const char* hint) {
    errors.push_back({ErrorCode::kNotSupported, std::move(what), "", path, hint});
  };
  const Model& model = scenario.model;
  const Layout& layout = scenario.layout;
  const Training& training = scenario.training;
  for (const auto& [path, type] :
       {std::pair("training.precision", training.precision),
        std::pair("training.grad_precision", training.grad_precision),
        std::pair("training.reduce_precision", training.reduce_precision)}) {
    if (type != DataType::kFp32) {
      refuse(path, fmt::format("{} is not run by the CPU backend", name_of(type)), "use fp32");
    }
  }
  if (training.trains_adapters()) {
    refuse("training.mode", fmt::format("{} is not run by the CPU backend", name_of(training.mode)),
           "use pretrain");
  }
  if (Shape(scenario).dropout) {
    refuse("model.dropout", "dropout is not run by the CPU backend", "state dropout 0");
  }
  if (model.position == Position::kAlibi) {
    refuse("model.position", "alibi is not run by the CPU backend", "use learned, rope or none");
  }
  if (model.attention_sinks > 0) {
    refuse("model", "attention sinks are not run by the CPU backend", "use another model");
  }
  if (model.kv_heads < layout.tp) {
    refuse("layout.tp",
           fmt::format("{} ranks for {} key-value heads are not run by the CPU backend", layout.tp,
                       model.kv_heads),
           "at most as many ranks as key-value heads");
  }
  if (model.wide_query_key_norm && layout.tp > 1) {
    refuse("layout.tp", "a norm over all heads that tp cuts is not run by the CPU backend",
           "use tp 1");
  }
  if (layout.overlap.tp) {
    refuse("layout.overlap.tp",
           "products pipelined with their collectives are not run by the CPU "
           "backend",
           "use false");
  }
  return errors;
}

}  // namespace stepcast
