// SPDX-License-Identifier: Apache-2.0
// The folders of one collection of data.
#pragma once

#include <string>

#include "economics/prices.h"
#include "layout/data_folders.h"

namespace stepcast {

struct DataRoot {
  DataFolders folders;
  std::string suites;
  PriceFiles prices;
  std::string root;
};

bool holds_data(const std::string& folder);
// Data of the source tree, of an installation, or inside the program (kCarriedRoot).
DataRoot data_in(const std::string& folder);

}  // namespace stepcast
