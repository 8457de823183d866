// SPDX-License-Identifier: Apache-2.0
// A scenario: model, cluster, training and layout, as the file format states them
// (docs/formats/scenario.md). Keys that it leaves out have defaults in a forecast, and are searched
// by a plan.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto stated = stepcast::api::Scenario::parse(*data, R"({
//     "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
//     "training": {"global_batch": 64, "sequence_length": 4096}})");
//   if (!stated) return stated.error();
//   const auto sharded = stated->with("layout.zero", "1");
//   if (!sharded) return sharded.error();
//   const auto resolved = sharded->resolved();
//   if (!resolved) return resolved.error();
//   std::puts(resolved->c_str());  // with every default filled in
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "stepcast/data.h"
#include "stepcast/errors.h"

namespace stepcast::api {

class Scenario {
 public:
  // Reads JSON text or a file. Errors: what is no JSON, or a file that cannot be read. `name`
  // stands for the file in later errors.
  static Result<Scenario> parse(const Data& data, std::string_view json,
                                const std::string& name = "scenario");
  static Result<Scenario> load(const Data& data, const std::string& file);

  // The scenario with the key at a dotted path set: with("layout.tp", "8"). The value is read as
  // JSON, else as text.
  Result<Scenario> with(std::string_view path, std::string_view value) const;

  // Everything that is wrong with it: unknown keys, values out of range, rules that it breaks.
  Errors errors() const;

  const std::string& name() const { return name_; }
  Scenario named(std::string name) const { return {data_, json_, std::move(name)}; }
  const std::string& json() const { return json_; }  // as it is stated
  Result<std::string> resolved() const;              // as JSON, with every default filled in
  const Data& data() const { return data_; }

 private:
  Scenario(Data data, std::string json, std::string name)
      : data_(std::move(data)), json_(std::move(json)), name_(std::move(name)) {}

  Data data_;
  std::string json_;
  std::string name_;
};

}  // namespace stepcast::api
