// SPDX-License-Identifier: Apache-2.0
// The forecast of one step of one layout.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto scenario = stepcast::api::Scenario::parse(*data, R"({
//     "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
//     "training": {"global_batch": 64, "sequence_length": 4096}, "layout": {"tp": 2, "pp": 2}})");
//   if (!scenario) return scenario.error();
//   const auto prediction = stepcast::api::predict(*scenario);
//   if (!prediction) return prediction.error();
//   std::printf("%.3f s, %s\n", prediction->step_time().value(),
//               prediction->fits() ? "fits" : "does not fit");
//   std::puts(prediction->text().c_str());
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "stepcast/scenario.h"

namespace stepcast::api {

struct PredictOptions {
  // Changes of the cluster's resources, "nic=+20%".
  std::vector<std::string> what_if = {};
  bool timeline = false;      // keep what pages and traces need
  bool explain = false;       // also say what each cost rests on
  bool unfolded = false;      // replay every rank, not one of each class
  bool contention = true;     // false: transfers move as if alone on their links
  bool causal_flops = false;  // attention counts half in FLOPs, MFU and HFU
  std::string prices = {};    // a file of prices that goes before those that ship
  std::uint64_t seed = 0;     // of the run that an explanation draws
  // Asked now and then; once it is true, the forecast ends with a list of no errors.
  std::function<bool()> stop = {};
  bool pictures = false;  // keep what pictures() needs, which is quicker than a timeline
};

class Prediction {
 public:
  bool fits() const;  // in the device's memory
  Seconds step_time() const;
  Seconds step_time_low() const;  // nine in ten runs lie between low and high
  Seconds step_time_high() const;
  double tokens_per_s() const;
  double mfu() const;              // 0 to 1
  double bubble_fraction() const;  // 0 to 1
  ByteCount peak_memory() const;   // of the fullest rank's device

  // Every figure, in the format of docs/formats/prediction.md.
  std::string json() const;
  std::string csv() const;
  std::string text() const;
  std::string markdown() const;
  // A page that opens in a browser, a Chrome trace, and memory over the step as JSON. Errors: made
  // without `timeline`.
  Result<std::string> html() const;
  Result<std::string> trace() const;
  Result<std::string> memory_timeline() const;
  // The page's verdict, figures, waterfall, pipeline and memory, to stand in a page with its style.
  // Errors: made with neither `timeline` nor `pictures`.
  Result<std::string> pictures() const;

  struct Made;  // only this library knows it
  explicit Prediction(std::shared_ptr<const Made> made) : made_(std::move(made)) {}
  const Made& made() const { return *made_; }

 private:
  std::shared_ptr<const Made> made_;
};

// Errors: everything that is wrong with the scenario, or that cannot be forecast yet.
Result<Prediction> predict(const Scenario& scenario, const PredictOptions& options = {});

}  // namespace stepcast::api
