// SPDX-License-Identifier: Apache-2.0
#include "stepcast/topology.h"

#include "cluster/cluster.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "report/topology_text.h"
#include "stepcast/detail/data_root.h"

namespace stepcast::api {

struct Cluster::Made {
  stepcast::Cluster cluster;
};

Result<Cluster> Cluster::find(const Data& data, const std::string& name_or_file) {
  const auto document = JsonDocument::from(name_or_file, "");
  auto cluster = read_cluster(document->root(), data.root().folders.topologies);
  if (!document->ok()) return failure(document->errors());
  Errors errors = cluster.topology.check();
  if (!errors.empty()) return failure(std::move(errors));
  return Cluster(std::make_shared<const Made>(Made{std::move(cluster)}));
}

const std::string& Cluster::name() const { return made_->cluster.spec.name; }
std::int64_t Cluster::gpus() const { return made_->cluster.gpus(); }
std::size_t Cluster::vertices() const { return made_->cluster.topology.vertices().size(); }
std::size_t Cluster::links() const { return made_->cluster.topology.links().size(); }

std::string Cluster::json() const { return topology_json(made_->cluster); }
std::string Cluster::text() const { return topology_table(made_->cluster); }
std::string Cluster::dot() const { return topology_dot(made_->cluster); }
std::string Cluster::graphml() const { return topology_graphml(made_->cluster); }

}  // namespace stepcast::api
