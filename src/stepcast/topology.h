// SPDX-License-Identifier: Apache-2.0
// A cluster and the graph of its links.
//
// Example:
//   const auto data = stepcast::api::Data::open(folder);
//   if (!data) return data.error();
//   const auto cluster = stepcast::api::Cluster::find(*data, "dgx-h100x4");
//   if (!cluster) return cluster.error();
//   if (cluster->gpus() != 32) std::abort();
//   std::puts(cluster->dot().c_str());  // for Graphviz
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stepcast/data.h"

namespace stepcast::api {

class Cluster {
 public:
  // "dgx-h100", "dgx-h100x4" or a file. Errors: all that is wrong with it, or that a GPU cannot
  // reach another.
  static Result<Cluster> find(const Data& data, const std::string& name_or_file);

  const std::string& name() const;
  std::int64_t gpus() const;
  std::size_t vertices() const;  // GPUs, switches, NICs
  std::size_t links() const;     // one for each direction

  std::string json() const;  // every vertex and link; a cluster file can state it
  std::string text() const;
  std::string dot() const;      // Graphviz
  std::string graphml() const;  // graph tools

  struct Made;  // only this library knows it
  explicit Cluster(std::shared_ptr<const Made> made) : made_(std::move(made)) {}

 private:
  std::shared_ptr<const Made> made_;
};

}  // namespace stepcast::api
