// SPDX-License-Identifier: Apache-2.0
// Lists of models, clusters, GPUs, schedules and keys that ship (`stepcast show`).
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "core/text/written.h"
#include "report/text_table.h"

namespace stepcast {

struct DataFolders;

struct CatalogTopic {
  const char* name;  // "models"
  const char* help;
};
std::vector<CatalogTopic> catalog_topics();

struct Listing {
  TextTable table;
  Written json;  // exact values
};

// The entries of a topic whose names contain `filter`. Errors: a topic that there is not, data that
// cannot be read, and a filter that leaves none.
Result<Listing> list_catalog(const std::string& topic, const DataFolders& folders,
                             const std::string& filter = "");

}  // namespace stepcast
