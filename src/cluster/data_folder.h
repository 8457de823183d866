// SPDX-License-Identifier: Apache-2.0
// A folder of JSON files that are known by their stems: topologies/clusters,
// topologies/accelerators.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_name.h"
#include "core/result.h"

namespace stepcast {

class JsonDocument;
class ObjectReader;

class DataFolder {
 public:
  // `kind` names what the files hold: "cluster" reads files that say "stepcast_cluster": 1.
  DataFolder(std::string folder, std::string kind)
      : folder_(std::move(folder)), kind_(std::move(kind)) {}

  Result<std::vector<std::string>> names() const { return data_names(folder_); }
  bool has(const std::string& name) const;

  // Opens by stem, or by path (core/data_name.h). The error names the nearest stem.
  Result<std::unique_ptr<JsonDocument>> open(const std::string& name) const;

 private:
  std::string folder_;
  std::string kind_;
};

std::vector<std::string> read_texts(ObjectReader& reader, std::string_view key);  // a list of text

}  // namespace stepcast
