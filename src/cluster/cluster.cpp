// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.h"

#include <fmt/format.h>

#include <utility>

#include "cluster/cluster_fields.h"
#include "cluster/data_folder.h"
#include "cluster/irregular_cluster.h"
#include "cluster/local_cluster.h"
#include "cluster/named_cluster.h"
#include "cluster/nccl_topology.h"
#include "cluster/placement.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text_file.h"

namespace stepcast {
namespace {

// A description that stands on no base: a file of topologies/clusters, or written in the scenario.
Cluster read_whole(ObjectReader& reader, const std::string& topologies_folder,
                   const JsonDocument& document) {
  reader.ignore("stepcast_cluster");
  if (reader.has("vertices")) return read_irregular_cluster(reader, topologies_folder);
  Cluster out;
  ClusterSpec& spec = out.spec;
  spec.name = kUnnamedCluster;
  read_identity_fields(reader, topologies_folder, spec);
  read_shape_fields(reader, spec);
  read_size_fields(reader, spec);
  read_place_fields(reader, spec);
  if (spec.title.empty()) spec.title = spec.name;
  if (spec.nics_per_node == 0 && !spec.network) spec.network = Network::kNone;
  share_memory(spec);
  if (reader.has("accelerator")) {
    require_shape_fields(reader, spec);
    check_shape(reader, spec);
  } else {
    reader.fail("base", ErrorCode::kMissingKey, "is required and missing",
                "the name of a cluster; one without a base starts with its accelerator");
  }
  if (document.ok()) read_part_fields(reader, topologies_folder, spec);
  for (const char* parts : {"fail", "degrade", "accelerator_of"}) reader.ignore(parts);
  reader.finish();
  return out;
}

// The parts that a reader names as gone or slow.
SortedJson stated_parts(ObjectReader& reader) {
  SortedJson out = SortedJson::object();
  for (const char* key : {"fail", "degrade"}) {
    if (const auto stated = reader.value(key)) out[key] = stated->raw();
  }
  return out;
}

// The cluster of a file: the stem of a shipped one, or a path. `parts`: laid over a graph, which
// takes nothing else.
Result<Cluster> load_base(const std::string& base, const std::string& topologies_folder,
                          const SortedJson& parts = SortedJson::object()) {
  auto document = shipped_clusters(topologies_folder).open(base);
  if (!document) return failure(document.error());
  if (!parts.empty()) {
    SortedJson laid_over = (*document)->root().raw();
    laid_over.update(parts);
    document = JsonDocument::from(std::move(laid_over), (*document)->file());
  }
  ObjectReader reader((*document)->root());
  for (const char* names : {"names_of_node", "names_of_card"}) read_texts(reader, names);
  Cluster cluster = read_whole(reader, topologies_folder, **document);
  reader.required("name");
  if (!(*document)->ok()) return failure((*document)->errors());
  cluster.spec.base = base;
  return cluster;
}

// Machines of a file of NCCL or of the driver's tools, with what stands beside its name.
Cluster read_machines(const std::string& base, ObjectReader& reader,
                      const std::string& topologies_folder, JsonDocument& document) {
  const auto text = read_text_file(base, {.most_bytes = kMostTopologyBytes});
  auto made = text ? cluster_of_machines(*text, base, reader, topologies_folder)
                   : Result<SortedJson>(failure(text.error()));
  if (!made) {
    document.add(made.error());
    return {};
  }
  made->update(stated_parts(reader));
  reader.finish();
  if (!document.ok()) return {};
  const auto whole = JsonDocument::from(std::move(*made), "");
  ObjectReader fields(whole->root());
  fields.ignore("stepcast_cluster");
  Cluster out = read_irregular_cluster(fields, topologies_folder);
  document.add(whole->errors());
  return out;
}

// {"base": ..., overrides}.
Cluster read_based(ObjectReader& reader, const std::string& topologies_folder,
                   JsonDocument& document) {
  const auto base = reader.text("base");
  if (!base) return {};
  if (*base == kLocalCluster) return read_local_cluster(reader, topologies_folder);
  if (is_machine_file(*base)) return read_machines(*base, reader, topologies_folder, document);
  const auto asked = find_cluster_name(*base, topologies_folder);
  Result<Cluster> loaded = asked || is_path(*base)
                               ? load_base(asked ? asked->cluster : *base, topologies_folder)
                               : failure(no_cluster(*base, topologies_folder));
  if (!loaded) {
    for (Error error : loaded.error()) {
      if (error.file.empty()) error.path = "base";
      document.add(std::move(error));
    }
    return {};
  }
  ClusterSpec& spec = loaded->spec;
  const bool of_card = asked && asked->of_card;
  if (spec.base != *base) {
    spec.reading = fmt::format("{} is read as {}, {}", *base, spec.base,
                               of_card ? "a box of which it is one card" : spec.title);
  }
  if (spec.is_graph) {
    const SortedJson parts = stated_parts(reader);
    reader.finish();  // it has nothing else to override
    if (parts.empty() || !document.ok()) return std::move(*loaded);
    loaded = load_base(spec.base, topologies_folder, parts);
    if (loaded) return std::move(*loaded);
    for (Error error : loaded.error()) {
      error.file.clear();
      document.add(std::move(error));
    }
    return {};
  }
  read_identity_fields(reader, topologies_folder, spec);
  read_shape_fields(reader, spec);
  read_size_fields(reader, spec);
  read_place_fields(reader, spec);
  if (of_card && !reader.has("nodes") && !reader.has("gpus")) spec.gpus = 1;
  share_memory(spec);
  check_shape(reader, spec);
  if (document.ok()) read_part_fields(reader, topologies_folder, spec);
  for (const char* parts : {"fail", "degrade", "accelerator_of"}) reader.ignore(parts);
  reader.finish();
  return std::move(*loaded);
}

// An error of the copy that was read, at its place in the scenario. Those of a base file keep their
// own place in the message.
void report(const JsonValue& value, const Error& error) {
  if (!error.file.empty() && error.file != value.file()) {
    const std::string message = to_string(error);
    if (value.is_object()) {
      ObjectReader(value).fail("base", error.code, message);
    } else {
      value.fail(error.code, message);
    }
  } else if (value.is_object() && !error.path.empty()) {
    ObjectReader(value).fail(error.path, error.code, error.message, error.hint);
  } else {
    value.fail(error.code, error.message, error.hint);
  }
}

}  // namespace

Cluster read_cluster(const JsonValue& value, const std::string& topologies_folder) {
  if (!value.is_object() && !value.is_text()) {
    value.fail(ErrorCode::kWrongType, value.dump() + " is not a cluster",
               "a name like \"dgx-h100x8\" or an object");
    return {};
  }
  // Reading a copy keeps this value's errors apart: only they decide whether the graph can be
  // built.
  const auto document = JsonDocument::from(
      value.is_text() ? named_cluster(*value.text(), topologies_folder) : value.raw(),
      value.file());
  ObjectReader reader(document->root());
  Cluster cluster = reader.has("base") ? read_based(reader, topologies_folder, *document)
                                       : read_whole(reader, topologies_folder, *document);
  for (const Error& error : document->errors()) report(value, error);
  if (document->ok() && !cluster.spec.is_graph) cluster.topology = build_topology(cluster.spec);
  return cluster;
}

Result<std::vector<ClusterSpec>> list_clusters(const std::string& topologies_folder) {
  std::vector<ClusterSpec> out;
  Errors errors;
  const auto names = shipped_clusters(topologies_folder).names();
  if (!names) return failure(names.error());
  for (const std::string& name : *names) {
    Result<Cluster> cluster = load_base(name, topologies_folder);
    if (cluster) {
      out.push_back(std::move(cluster->spec));
    } else {
      append(errors, cluster.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
