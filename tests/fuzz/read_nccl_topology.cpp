// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.h"
#include "cluster/nccl_topology.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/data_folders.h"

namespace stepcast::fuzz {

void read_nccl_topology(std::string_view text) {
  const auto beside = JsonDocument::from({{"nodes", 2}}, "cluster");
  ObjectReader reader(beside->root());
  const auto made = cluster_of_nccl_topology(text, "system.xml", reader, data_folders().topologies);
  say_errors_of(made);
  if (!made) return;
  const auto document = JsonDocument::from(*made, "cluster");
  read_cluster(document->root(), data_folders().topologies);
  say(document->errors());
}

}  // namespace stepcast::fuzz
