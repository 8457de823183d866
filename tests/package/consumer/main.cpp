// SPDX-License-Identifier: Apache-2.0
// A program of somebody else: forecasts one step through the installed library.
#include <cstdio>

#include "core/json.h"
#include "layout/scenario.h"
#include "predict/prediction.h"

namespace {

constexpr const char* kScenario = R"({
  "stepcast": 1,
  "model": "llama-3.1-8b",
  "cluster": {"base": "dgx-h100", "nodes": 1},
  "training": {"global_batch": 64, "sequence_length": 4096},
  "layout": {"tp": 2, "pp": 2}
})";

int report(const stepcast::Errors& errors) {
  std::fprintf(stderr, "%s", stepcast::to_string(errors).c_str());
  return 1;
}

}  // namespace

int main() {
  const std::string data = STEPCAST_DATA_DIR;
  const stepcast::DataFolders folders{
      .models = data + "/models",
      .topologies = data + "/topologies",
      .profiles = data + "/profiles",
  };
  auto document = stepcast::JsonDocument::parse(kScenario, "scenario");
  if (!document) return report(document.error());
  const auto scenario = stepcast::read_scenario(**document, folders);
  if (!scenario) return report(scenario.error());
  const auto prediction = stepcast::predict(*scenario, folders);
  if (!prediction) return report(prediction.error());
  std::printf("step %.4f s\n", prediction->step_time.value());
  return prediction->step_time > stepcast::Seconds(0) ? 0 : 1;
}
