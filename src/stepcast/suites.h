// SPDX-License-Identifier: Apache-2.0
// Suites of recorded runs: each case is a scenario and what was measured (docs/formats/suite.md).
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto names = stepcast::api::shipped_suites(*data);
//   if (!names) return names.error();
//   const auto suite = stepcast::api::Suite::load(*data, "zero-bubble-a100");
//   if (!suite) return suite.error();
//   const auto prediction = stepcast::api::predict(suite->scenario(0));
//   if (!prediction) return prediction.error();
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/prediction.h"

namespace stepcast::api {

// Names that Suite::load knows.
Result<std::vector<std::string>> shipped_suites(const Data& data);

class Suite {
 public:
  // A shipped suite by its name, or a file. Errors: all that is wrong with it.
  static Result<Suite> load(const Data& data, const std::string& name_or_file);

  const std::string& name() const;
  std::size_t cases() const;
  const std::string& id(std::size_t index) const;  // below cases()
  // A collective that was measured by itself: it has no scenario of a step.
  bool is_collective(std::size_t index) const;
  Scenario scenario(std::size_t index) const;  // of a step

  struct Made;  // only this library knows it
  explicit Suite(std::shared_ptr<const Made> made) : made_(std::move(made)) {}
  const Made& made() const { return *made_; }

 private:
  std::shared_ptr<const Made> made_;
};

}  // namespace stepcast::api
