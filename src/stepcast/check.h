// SPDX-License-Identifier: Apache-2.0
// Forecasts of recorded runs beside what was measured: the gate of a build.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto suite = stepcast::api::Suite::load(*data, "zero-bubble-a100");
//   if (!suite) return suite.error();
//   const auto outcome = stepcast::api::check({*suite}, {"step_time.mean_abs_error=0.10"});
//   if (!outcome) return outcome.error();
//   std::puts(outcome->text().c_str());
//   if (!outcome->passed()) std::puts("forecasts and measurements have parted");
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/suites.h"

namespace stepcast::api {

class CheckOutcome {
 public:
  bool passed() const;  // no tolerance is broken, neither of the call nor of a suite

  std::string json() const;
  std::string csv() const;
  std::string text() const;
  std::string markdown() const;
  std::string html() const;
  std::string junit() const;

  struct Made;  // only this library knows it
  explicit CheckOutcome(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

 private:
  std::shared_ptr<const Made> made_;
};

// `tolerances` as --tolerance of the program reads them. Cases run on up to `threads` threads,
// whose number changes no result. Once `stop` is true, the check ends with a list of no errors.
// Errors: tolerances of rows that there are not.
Result<CheckOutcome> check(const std::vector<Suite>& suites,
                           const std::vector<std::string>& tolerances = {}, int threads = 1,
                           const std::function<bool()>& stop = {});

}  // namespace stepcast::api
