// SPDX-License-Identifier: Apache-2.0
// Forecasts of several scenarios side by side, differences of their keys first.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto plain = stepcast::api::Scenario::parse(*data, R"({
//     "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
//     "training": {"global_batch": 64, "sequence_length": 4096}})", "plain");
//   if (!plain) return plain.error();
//   const auto sharded = plain->with("layout.zero", "1");
//   if (!sharded) return sharded.error();
//   const auto comparison = stepcast::api::compare({*plain, sharded->named("sharded")});
//   if (!comparison) return comparison.error();
//   std::puts(comparison->markdown().c_str());
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/prediction.h"

namespace stepcast::api {

class Comparison {
 public:
  std::string json() const;
  std::string csv() const;
  std::string text() const;
  std::string markdown() const;
  std::string html() const;

  struct Made;  // only this library knows it
  explicit Comparison(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

 private:
  std::shared_ptr<const Made> made_;
};

// Scenarios of different names, on up to `threads` threads; their number changes no result. A
// scenario without a forecast stands there with its reason. Once `stop` is true, the comparison
// ends with a list of no errors. Errors: two of one name, or none of them has a forecast.
Result<Comparison> compare(const std::vector<Scenario>& scenarios, int threads = 1,
                           const std::function<bool()>& stop = {});

}  // namespace stepcast::api
