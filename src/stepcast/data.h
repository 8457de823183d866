// SPDX-License-Identifier: Apache-2.0
// The data that forecasts read: models, clusters, profiles of devices, prices and suites.
//
// Example:
//   const auto data = stepcast::api::Data::shipped();  // or open("folder"), for data of your own
//   const auto models = data.list("models", "llama");
//   if (!models) return models.error();
//   std::puts(models->c_str());  // JSON: names, exact parameter counts
#pragma once

#include <memory>
#include <string>

#include "stepcast/errors.h"

namespace stepcast {
struct DataRoot;
}

namespace stepcast::api {

class Data {
 public:
  // The data that the library was built with.
  static Data shipped();

  // A folder with models/, topologies/, profiles/, prices/ and suites/. Errors: it has none.
  static Result<Data> open(const std::string& folder);

  // Lists what there is of "models", "clusters", "gpus", "schedules", "keys", "figures" or
  // "documents", as JSON. `filter`: only names that contain it. Errors: another topic, or a filter
  // that leaves nothing.
  Result<std::string> list(const std::string& topic, const std::string& filter = "") const;

  const DataRoot& root() const { return *root_; }

 private:
  explicit Data(std::shared_ptr<const DataRoot> root) : root_(std::move(root)) {}
  std::shared_ptr<const DataRoot> root_;
};

}  // namespace stepcast::api
