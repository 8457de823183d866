// SPDX-License-Identifier: Apache-2.0
// Random scenarios that are legal: model, cluster, training, layout and run are drawn so that they
// go together, and what the product refuses all the same is drawn again.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "layout/scenario.h"

namespace stepcast {
struct DataFolders;
}  // namespace stepcast

namespace stepcast::generate {

struct LegalScenario {
  std::uint64_t seed = 0, index = 0;
  std::string text;  // the file
  Scenario scenario;
  int attempts = 1;     // until one was legal
  std::string refusal;  // the last one that was not
};

struct DrawOptions {
  std::string framework;  // empty: any of them
  bool forecasts = true;  // else also what is legal and not modelled yet
};

DataFolders source_folders();

// Scenario `index` of a seed: the same on every machine, for every order of calls.
LegalScenario draw_scenario(std::uint64_t seed, std::uint64_t index,
                            const DrawOptions& options = {});

// The scenario of a file's text; the errors of one that is not legal.
Result<Scenario> read_text(const std::string& text, bool forecasts = true);

}  // namespace stepcast::generate
