// SPDX-License-Identifier: Apache-2.0
// A program of somebody else: forecasts one step through the installed library.
#include <cstdio>

#include "stepcast/stepcast.h"

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
  const auto data = stepcast::api::Data::open(STEPCAST_DATA_DIR);
  if (!data) return report(data.error());
  const auto scenario = stepcast::api::Scenario::parse(*data, kScenario);
  if (!scenario) return report(scenario.error());
  const auto prediction = stepcast::api::predict(*scenario);
  if (!prediction) return report(prediction.error());
  std::printf("step %.4f s\n", prediction->step_time().value());
  return prediction->step_time() > stepcast::Seconds(0) ? 0 : 1;
}
