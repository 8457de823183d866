// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/output.h"
#include "core/json.h"
#include "graphs/read_graph.h"
#include "replay/cluster_network.h"
#include "replay/dimension_network.h"
#include "replay/graph_replay.h"
#include "report/number_text.h"
#include "report/replay_report.h"

namespace stepcast::cli {
namespace {

struct ReplayFlags {
  GraphSource source;
  std::string cluster, network, system, profile, rank_map;
  std::int64_t nodes = 0;
  std::string compute, communication;  // empty: as the system file has it, else "file", "model"
  std::string dependencies = "all";
  double compute_speed = 1;
  bool no_contention = false;
  std::string trace;
  std::vector<std::string> trace_ranks;
  OutputOptions output;
  std::string data;
};

constexpr std::size_t kTracedRanks = 16;  // of a trace whose ranks nobody chose

// The source that was typed, else the one that the system file says.
TimeSource source_of(const std::string& word, bool by_model) {
  return (word.empty() ? by_model : word == "model") ? TimeSource::kModel : TimeSource::kFile;
}

Errors plan_output(const ReplayFlags& flags, Output& output) {
  output.plan("-o", flags.output.file);
  output.plan("--trace", flags.trace);
  for (const std::string& file : flags.source.words) output.protect("FILE", file);
  output.protect("--network", flags.network);
  output.protect("--system", flags.system);
  output.protect("--groups", flags.source.groups);
  output.protect("--rank-map", flags.rank_map);
  Errors errors = output.check();
  if (flags.cluster.empty() == flags.network.empty()) {
    errors.push_back({ErrorCode::kMissingKey,
                      flags.cluster.empty() ? "is not given: nothing tells what ranks send over"
                                            : "does not go with --network",
                      "", "--cluster", "a cluster by name, or a network file of ASTRA-sim"});
  }
  if (!flags.system.empty() && flags.network.empty()) {
    errors.push_back({ErrorCode::kIllegal, "needs --network: the two describe one machine", "",
                      "--system", "give the network file beside it"});
  }
  const std::pair<const char*, bool> of_clusters[] = {{"--nodes", flags.nodes > 0},
                                                      {"--profile", !flags.profile.empty()},
                                                      {"--rank-map", !flags.rank_map.empty()}};
  for (const auto& [flag, is_given] : of_clusters) {
    if (is_given && flags.cluster.empty()) {
      errors.push_back({ErrorCode::kIllegal, "needs --cluster", "", flag, ""});
    }
  }
  return errors;
}

// The cluster with as many nodes as the ranks need, unless the user says how many.
Result<Cluster> find_cluster(const ReplayFlags& flags, std::int64_t ranks,
                             const DataFolders& folders) {
  const auto read = [&](std::int64_t nodes) -> Result<Cluster> {
    SortedJson value = flags.cluster;
    if (nodes > 0) value = {{"base", flags.cluster}, {"nodes", nodes}};
    const auto document = JsonDocument::from(std::move(value), "");
    Cluster cluster = read_cluster(document->root(), folders.topologies);
    Errors errors = document->errors();
    for (Error& error : errors) error.path = nodes > 0 && flags.nodes > 0 ? "--nodes" : "--cluster";
    if (!errors.empty()) return failure(std::move(errors));
    return cluster;
  };
  auto cluster = read(flags.nodes);
  if (!cluster || flags.nodes > 0 || cluster->gpus() >= ranks) return cluster;
  if (cluster->spec.is_graph || cluster->spec.gpus_per_node < 1) return cluster;
  return read((ranks + cluster->spec.gpus_per_node - 1) / cluster->spec.gpus_per_node);
}

// A machine as ASTRA-sim's files describe it.
struct AstraMachine {
  DimensionFile network;
  SystemSettings system;
};

void note_not_read(const ReplayFlags& flags, const std::string& file,
                   const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  note(flags.output,
       fmt::format("note: {} has keys that have no meaning here: {}", file, fmt::join(keys, ", ")));
}

Result<AstraMachine> read_machine(const ReplayFlags& flags) {
  AstraMachine out;
  auto file = read_network_file(flags.network);
  if (!file) return failure(file.error());
  out.network = std::move(*file);
  note_not_read(flags, flags.network, out.network.not_read);
  if (!flags.system.empty()) {
    auto read = read_system_file(flags.system);
    if (!read) return failure(read.error());
    out.system = std::move(*read);
    note_not_read(flags, flags.system, out.system.not_read);
  }
  const SystemSettings& system = out.system;
  const bool can_compute = system.peak_flops > 0 || system.memory.value() > 0;
  if (source_of(flags.compute, system.roofline) == TimeSource::kModel && !can_compute) {
    const bool was_typed = !flags.compute.empty();
    return failure({ErrorCode::kMissingKey,
                    was_typed ? "model needs peak-perf or local-mem-bw"
                              : "roofline-enabled needs peak-perf or local-mem-bw",
                    was_typed ? "" : flags.system, was_typed ? "--compute" : "",
                    "give --system with them, or --compute file"});
  }
  return out;
}

Result<std::vector<std::int32_t>> traced_ranks(const ReplayFlags& flags,
                                               const GraphReplay& replay) {
  const auto count = static_cast<std::int32_t>(replay.ranks.size());
  std::vector<std::int32_t> out;
  for (const std::string& word : flags.trace_ranks) {
    const bool is_number = !word.empty() && word.size() < 9 &&
                           std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || std::stoi(word) >= count) {
      return failure({ErrorCode::kBadValue, fmt::format("'{}' is no rank of the graph", word), "",
                      "--trace-ranks", fmt::format("0 to {}", count - 1)});
    }
    out.push_back(std::stoi(word));
  }
  if (!out.empty()) return out;
  for (std::int32_t r = 0; r < count && out.size() < kTracedRanks; ++r) out.push_back(r);
  if (replay.critical_rank >= static_cast<std::int32_t>(out.size())) {
    out.back() = replay.critical_rank;
  }
  return out;
}

Written render(const OutputOptions& output, const ReplayReport& report) {
  if (output.format == "json") return replay_json(report);
  if (output.format == "csv") return replay_csv(report);
  return replay_text(report, output.format == "md" ? Form::kMarkdown : text_form(output));
}

std::string source_words(const std::vector<std::string>& files) {
  return files.size() == 1 ? files.front() : fmt::format("{} files", files.size());
}

void note_oddities(const ReplayFlags& flags, const GraphReplay& replay) {
  if (replay.without_work > 0) {
    note(flags.output,
         fmt::format("note: nodes with neither num_ops nor tensor_size, which last as the file "
                     "states: {}",
                     replay.without_work));
  }
  if (replay.roomy_receives > 0) {
    note(flags.output,
         fmt::format("note: receives with room for more than is sent to them, of which what is "
                     "sent moves: {} ({})",
                     replay.roomy_receives, replay.roomy_receive));
  }
}

int run_over(const ReplayFlags& flags, const ExecutionGraph& graph, GraphNetwork& network,
             const SystemSettings& system, Output& output) {
  ReplayRules rules;
  rules.compute = source_of(flags.compute, system.roofline && !system.replay_alone);
  rules.communication = source_of(flags.communication, !system.replay_alone);
  rules.compute_speed = flags.compute_speed;
  rules.contention = !flags.no_contention;
  const auto replay = replay_graph(graph, network, rules);
  if (!replay) return report_errors(replay.error());
  note_oddities(flags, *replay);
  const ReplayReport report{graph,          *replay,        rules, source_words(flags.source.words),
                            network.name(), network.ranks()};
  output.set_main(flags.output, render(flags.output, report));
  const auto ranks = traced_ranks(flags, *replay);
  if (!ranks) return report_errors(ranks.error());
  if (!flags.trace.empty()) output.set_file(flags.trace, replay_trace_json(report, *ranks));
  if (const int code = output.commit(); code != kOk) return code;
  if (!flags.trace.empty()) {
    const bool all = ranks->size() == replay->ranks.size();
    note(flags.output,
         fmt::format("wrote {} ({}; opens in Perfetto)", flags.trace,
                     all ? "all ranks"
                         : fmt::format("{} of {} ranks", ranks->size(), replay->ranks.size())));
  }
  return kOk;
}

Result<ExecutionGraph> read_source(const ReplayFlags& flags, const DimensionFile& network) {
  GraphSource source = flags.source;
  source.data_alone = flags.dependencies == "data";
  for (const NetworkDimension& one : network.dimensions) source.dimensions.push_back(one.ranks);
  auto graph = read_graph(source);
  if (graph && graph->ignored_dependencies > 0) {
    note(flags.output,
         fmt::format("note: dependencies on nodes that the traces do not have, ignored: {}",
                     graph->ignored_dependencies));
  }
  return graph;
}

int run_on_cluster(const ReplayFlags& flags, const ExecutionGraph& graph,
                   const DataFolders& folders, Output& output) {
  const auto ranks = static_cast<std::int64_t>(graph.ranks.size());
  const auto cluster = find_cluster(flags, ranks, folders);
  if (!cluster) return report_errors(cluster.error());
  if (const std::string& reading = cluster->spec.reading; !reading.empty()) {
    note(flags.output, "note: " + reading);
  }
  ClusterPlaces places{flags.profile, {}};
  if (!flags.rank_map.empty()) {
    auto map = read_rank_map(flags.rank_map, ranks, cluster->gpus());
    if (!map) return report_errors(map.error());
    places.gpus = std::move(*map);
  }
  const auto network = cluster_network(*cluster, folders, std::move(places));
  if (!network) {
    Errors errors = network.error();
    for (Error& error : errors) {
      if (error.path == "profile") error.path = "--profile";
    }
    return report_errors(errors);
  }
  return run_over(flags, graph, **network, {}, output);
}

int run_replay(const ReplayFlags& flags) {
  Output output;
  if (const Errors errors = plan_output(flags, output); !errors.empty()) {
    return report_errors(errors);
  }
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  AstraMachine machine;
  if (!flags.network.empty()) {
    auto read = read_machine(flags);
    if (!read) return report_errors(read.error());
    machine = std::move(*read);
  }
  const auto graph = read_source(flags, machine.network);
  if (!graph) return report_errors(graph.error());
  if (flags.network.empty()) return run_on_cluster(flags, *graph, data->folders, output);
  const auto network = dimension_network(machine.network, machine.system);
  return run_over(flags, *graph, *network, machine.system, output);
}

}  // namespace

Command add_replay(CommandLine program) {
  auto flags = std::make_shared<ReplayFlags>();
  CommandLine app = program.add_command(
      "replay", "run execution traces of Chakra, or a schedule in GOAL, over a cluster");
  app.footer(
      "Examples:\n"
      "  stepcast replay traces/ --cluster dgx-h100x4\n"
      "  stepcast replay all_reduce.0.et all_reduce.1.et --cluster dgx-a100 --trace replay.json\n"
      "  stepcast replay app.goal --cluster dgx-h100 --format json\n"
      "  stepcast replay all_reduce --network Ring_8npus.yml --system Ring_4chunks.json\n"
      "A trace set has one file PREFIX.RANK.et for each rank: give the files, their folder, or\n"
      "PREFIX. Rank i runs on GPU i; without --nodes the cluster has as many as the ranks need.");
  app.add("FILE", flags->source.words,
          "traces of Chakra (a folder, or PREFIX of PREFIX.RANK.et), or GOAL")
      .required();
  app.add("--cluster", flags->cluster, "NAME, NAMExNODES or a file: what ranks send over");
  app.add("--nodes", flags->nodes, "nodes of the cluster").positive();
  app.add("--profile", flags->profile, "costs to price by, in place of those of the cluster's GPUs")
      .type_name("NAME|PATH");
  app.add("--rank-map", flags->rank_map, "the GPU of each rank: [0, 8, 1, 9]").type_name("FILE");
  app.add("--network", flags->network, "network file of ASTRA-sim, in the cluster's place")
      .type_name("FILE");
  app.add("--system", flags->system, "system file of ASTRA-sim, beside --network")
      .type_name("FILE");
  app.add("--groups", flags->source.groups, "ranks of each group: {\"1\": [0, 1], \"2\": [2, 3]}")
      .type_name("FILE");
  app.add_switch("--ignore-missing", flags->source.ignore_missing,
                 "take nodes that a trace waits for and does not have as ended");
  app.add(
         "--dependencies", flags->dependencies,
         "which dependencies of a trace are awaited: all, or those of data alone, for traces whose "
         "control dependencies hold the call stack")
      .one_of({"all", "data"})
      .shows_default();
  app.add("--compute", flags->compute,
          "how long nodes compute: as the file states (the default, unless --system has "
          "roofline-enabled), or as the data sheet allows for their operations and bytes")
      .one_of({"file", "model"});
  app.add("--communication", flags->communication,
          "how long communication takes: as the network allows (the default, unless --system has "
          "replay-only), or as the file states")
      .one_of({"model", "file"});
  app.add("--compute-speed", flags->compute_speed, "computing is so many times as fast")
      .within(1e-6, 1e6)
      .shows_default();
  app.add_switch("--no-contention", flags->no_contention,
                 "move every transfer as if alone on its links");
  app.add("--trace", flags->trace, "write the replayed graph as a Chrome trace").type_name("FILE");
  app.add("--trace-ranks", flags->trace_ranks,
          "ranks in the trace, with commas (16 of them, and the one that ends last)")
      .splits_at(',')
      .one_word()
      .type_name("RANKS");
  add_output_flags(app, flags->output, {"table", "json", "csv", "md"});
  add_data_flag(app, flags->data);
  return {app, [flags] { return run_replay(*flags); }};
}

}  // namespace stepcast::cli
