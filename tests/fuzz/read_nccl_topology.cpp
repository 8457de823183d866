// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.h"
#include "cluster/nccl_topology.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/data_folders.h"

namespace stepcast::fuzz {

// Text that is no XML is a table of the driver's tools.
void read_nccl_topology(std::string_view text) {
  SortedJson keys = {{"nodes", 2}};
  const bool is_xml = text.starts_with('<');
  if (!is_xml) {
    keys.update({{"accelerator", "h100-sxm5-80g"},
                 {"pcie", "63 GB/s"},
                 {"nic", "400 Gb/s"},
                 {"network", "infiniband"}});
  }
  const auto beside = JsonDocument::from(keys, "cluster");
  ObjectReader reader(beside->root());
  const auto made = cluster_of_machines(text, is_xml ? "system.xml" : "topo.txt", reader,
                                        data_folders().topologies);
  say_errors_of(made);
  if (!made) return;
  const auto document = JsonDocument::from(*made, "cluster");
  read_cluster(document->root(), data_folders().topologies);
  say(document->errors());
}

}  // namespace stepcast::fuzz
