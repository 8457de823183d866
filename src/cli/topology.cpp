// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "cluster/cluster.h"
#include "cluster/plausible_links.h"
#include "cluster/topology.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "report/document_form.h"
#include "report/topology_text.h"

namespace stepcast::cli {
namespace {

struct TopologyFlags {
  std::string cluster;
  std::int64_t nodes = 0;
  std::vector<std::string> sets;
  OutputOptions output;
  std::string data;
};

// The cluster of a scenario that has nothing else.
Result<Cluster> read(const TopologyFlags& flags, const DataFolders& folders) {
  SortedJson value = flags.cluster;
  if (flags.nodes > 0) value = {{"base", flags.cluster}, {"nodes", flags.nodes}};
  SortedJson scenario = {{"cluster", std::move(value)}};
  for (const std::string& set : flags.sets) {
    Errors errors;
    if (set.starts_with("cluster.")) {
      errors = set_key(set, folders, scenario);
    } else {
      errors = {{ErrorCode::kBadValue, fmt::format("'{}' sets no key of the cluster", set), "",
                 "--set", "as in cluster.fail=node0/nic1"}};
    }
    if (!errors.empty()) return failure(errors);
  }
  const auto document = JsonDocument::from(std::move(scenario), "");
  ObjectReader reader(document->root());
  Cluster cluster = read_cluster(*reader.required("cluster"), folders.topologies);
  if (!document->ok()) return failure(document->errors());
  return cluster;
}

Result<Cluster> find_cluster(const TopologyFlags& flags) {
  const auto data = find_data(flags.data);
  if (!data) return failure(data.error());
  return read(flags, data->folders);
}

int run_show(const TopologyFlags& flags) {
  Output output(Worth::kNothing);
  output.plan("-o", flags.output.file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto cluster = find_cluster(flags);
  if (!cluster) return report_errors(cluster.error());
  if (const std::string& reading = cluster->spec.reading; !reading.empty()) {
    note(flags.output, "note: " + reading);
  }
  const std::string& format = flags.output.format;
  if (format == "json") {
    output.set_main(flags.output, topology_json(*cluster));
  } else if (format == "dot") {
    output.set_main(flags.output, topology_dot(*cluster));
  } else if (format == "graphml") {
    output.set_main(flags.output, topology_graphml(*cluster));
  } else {
    output.set_main(flags.output, topology_table(*cluster));
  }
  return output.commit();
}

int run_check(const TopologyFlags& flags) {
  Output output(Worth::kNothing);
  output.plan("-o", flags.output.file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto cluster = find_cluster(flags);
  if (!cluster) return report_errors(cluster.error());
  if (const Errors errors = cluster->topology.check(); !errors.empty()) {
    return report_errors(errors);
  }
  const Topology& topology = cluster->topology;
  if (const Errors errors = implausible_links(topology); !errors.empty()) {
    return report_errors(errors);
  }
  output.set_main(
      flags.output,
      line(fmt::format("{}: sound ({} GPUs, {} vertices, {} links)", cluster->spec.name,
                       topology.gpus().size(), topology.vertices().size(), topology.links().size()),
           Form::kText));
  return output.commit();
}

}  // namespace

std::vector<Command> add_topology(CommandLine program) {
  CommandLine topology = program.add_command("topology", "a cluster's graph");
  topology.footer("Example: stepcast topology show dgx-h100x4");
  std::vector<Command> out;
  const auto add = [&](const char* name, const char* help, const char* example,
                       const std::vector<std::string>& formats, int (*run)(const TopologyFlags&)) {
    auto flags = std::make_shared<TopologyFlags>();
    CommandLine app = topology.add_command(name, help);
    app.footer(example);
    app.add("CLUSTER", flags->cluster, "NAME, NAMExNODES or a file").required();
    app.add("--nodes", flags->nodes, "nodes of the cluster").positive();
    app.add("--set", flags->sets, "any key of the cluster, for example cluster.fail=node0/nic1")
        .type_name("KEY=VALUE")
        .one_word();
    add_output_flags(app, flags->output, formats);
    add_data_flag(app, flags->data);
    out.push_back({app, [flags, run] { return run(*flags); }});
  };
  add("show", "what the graph is made of",
      "Example: stepcast topology show dgx-h100 --nodes 4 --format dot -o cluster.dot",
      {"table", "json", "dot", "graphml"}, run_show);
  add("check",
      "whether every GPU can reach every other, no figure contradicts another, and all are "
      "plausible",
      "Example: stepcast topology check my-cluster.json", {"table"}, run_check);
  return out;
}

}  // namespace stepcast::cli
