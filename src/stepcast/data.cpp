// SPDX-License-Identifier: Apache-2.0
#include "stepcast/data.h"

#include <fmt/format.h>

#include "core/carried_files.h"
#include "report/catalog.h"
#include "shipped/carry_data.h"
#include "stepcast/detail/data_root.h"

namespace stepcast::api {

Data Data::shipped() {
  carry_shipped_data();
  return Data(std::make_shared<const DataRoot>(data_in(std::string(kCarriedRoot))));
}

Result<Data> Data::open(const std::string& folder) {
  if (!holds_data(folder)) {
    return failure({ErrorCode::kNotFound,
                    fmt::format("'{}' holds no models and topologies", folder), "", "",
                    "a folder with models/, topologies/, profiles/ and suites/"});
  }
  return Data(std::make_shared<const DataRoot>(data_in(folder)));
}

Result<std::string> Data::list(const std::string& topic, const std::string& filter) const {
  const auto listing = list_catalog(topic, root_->folders, filter);
  if (!listing) return failure(listing.error());
  return listing->json.text();
}

}  // namespace stepcast::api
