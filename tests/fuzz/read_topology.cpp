// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/data_folders.h"

namespace stepcast::fuzz {

void read_topology(std::string_view text) {
  with_document(text, [](JsonDocument& document) {
    read_cluster(document.root(), data_folders().topologies);
  });
}

}  // namespace stepcast::fuzz
