// SPDX-License-Identifier: Apache-2.0
#include "plan/lost_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/failed_parts.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "layout/data_folders.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

// Batches that are tried for one number of replicas, from the stated one down.
constexpr std::int64_t kMostBatches = 64;

class Loss {
 public:
  Loss(const Scenario& scenario, std::string part, const DataFolders& folders)
      : scenario_(scenario), part_(std::move(part)), folders_(folders) {}

  Result<Scenario> left() {
    const ClusterSpec& spec = scenario_.cluster.spec;
    if (spec.of_nodes > 0) {
      return failure(wrong(ErrorCode::kNotSupported,
                           "a loss beside other jobs is not supported yet",
                           "leave other_jobs out"));
    }
    if (spec.accelerator.is_cpu()) {
      return failure(wrong(ErrorCode::kNotSupported, "parts of this machine do not fail one by one",
                           "a cluster of GPUs"));
    }
    whole_ = spec.is_graph ? scenario_.cluster.topology : graph_without_failures();
    // A graph that is written out has lost them already.
    if (!spec.is_graph || !spec.base.empty()) {
      for (const FailedPart& failed : spec.failed) parts_.push_back(text_of(failed));
    }
    parts_.push_back(part_);
    const auto read = parse_failed_part(part_, whole_);
    if (!read) {
      const Error& error = read.error().front();
      return failure(wrong(error.code, error.message, error.hint));
    }
    find_lost(*read);
    const Layout& layout = scenario_.layout;
    const std::int64_t replica = scenario_.cluster.gpus() / layout.dp;
    const auto left = static_cast<std::int64_t>(left_.size());
    Errors errors;
    for (std::int64_t dp = std::min(layout.dp, left / replica); dp > 0; --dp) {
      auto scenario = with_replicas(dp, left - dp * replica);
      if (scenario) return scenario;
      if (errors.empty()) errors = scenario.error();
      if (!are_cured_by_less(scenario.error())) break;
    }
    if (!errors.empty()) return failure(std::move(errors));
    return failure(
        wrong(ErrorCode::kIllegal,
              fmt::format("{} GPUs are left, and a replica of the model takes {}", left, replica),
              "the job waits until the part is back"));
  }

 private:
  static Error wrong(ErrorCode code, std::string message, std::string hint) {
    return {code, std::move(message), "", "--what-if", std::move(hint)};
  }

  Topology graph_without_failures() const {
    ClusterSpec sound = scenario_.cluster.spec;
    sound.gpus += sound.failed_gpus;
    sound.failed_gpus = 0;
    sound.failed.clear();
    return build_topology(sound);
  }

  // Fewer replicas or another batch mend no cluster.
  static bool are_cured_by_less(const Errors& errors) {
    return std::ranges::none_of(
        errors, [](const Error& error) { return error.path.starts_with("cluster"); });
  }
  static bool are_cured_by_a_batch(const Errors& errors) {
    return std::ranges::all_of(
        errors, [](const Error& error) { return error.path == "training.global_batch"; });
  }

  // GPUs of the whole graph that are left: those of nodes that lost one come last, since the rest
  // of the replica that lost it is idle there. Else in their order.
  void find_lost(const FailedPart& part) {
    std::set<VertexId> lost;
    const auto lose = [&](const FailedPart& failed) {
      if (failed.left > 0) return;
      for (const VertexId gpu : gpus_of_part(failed.part, whole_)) lost.insert(gpu);
    };
    if (!scenario_.cluster.spec.is_graph) {
      for (const FailedPart& failed : scenario_.cluster.spec.failed) lose(failed);
    }
    lose(part);
    std::ranges::copy_if(whole_.gpus(), std::back_inserter(left_),
                         [&](VertexId gpu) { return !lost.contains(gpu); });
    std::set<std::int32_t> damaged;
    for (const VertexId gpu : lost) damaged.insert(node_of(gpu));
    std::stable_partition(left_.begin(), left_.end(),
                          [&](VertexId gpu) { return !damaged.contains(node_of(gpu)); });
  }

  std::int32_t node_of(VertexId gpu) const { return whole_.vertices()[gpu.index()].node; }

  // The last of those that are left stand idle; a node of which none is in use is left out as a
  // whole.
  std::vector<std::string> parts_with_idle(std::int64_t idle) const {
    std::map<std::int32_t, std::int64_t> used;  // by node
    const std::size_t working = left_.size() - static_cast<std::size_t>(idle);
    for (std::size_t i = 0; i < working; ++i) ++used[node_of(left_[i])];
    std::vector<std::string> parts = parts_;
    std::set<std::int32_t> nodes;
    for (const VertexId gpu : whole_.gpus()) {
      if (!used.contains(node_of(gpu))) nodes.insert(node_of(gpu));
    }
    for (const std::int32_t node : nodes) parts.push_back(fmt::format("node{}", node));
    for (std::size_t i = working; i < left_.size(); ++i) {
      if (!nodes.contains(node_of(left_[i]))) parts.push_back(whole_.name(left_[i]));
    }
    return parts;
  }

  Result<Scenario> with_replicas(std::int64_t dp, std::int64_t idle) const {
    SortedJson file = to_json(scenario_);
    file["cluster"]["fail"] = parts_with_idle(idle);
    file["layout"]["dp"] = dp;
    const std::int64_t stated = scenario_.training.global_batch;
    const std::int64_t share = dp * scenario_.layout.micro_batch;
    Errors errors;
    for (std::int64_t i = 0; i <= kMostBatches; ++i) {
      const std::int64_t batch = i == 0 ? stated : (stated / share + 1 - i) * share;
      if (batch <= 0) break;
      file["training"]["global_batch"] = batch;
      const auto document = JsonDocument::from(file, "--what-if");
      auto scenario = read_scenario(*document, folders_);
      if (scenario) return scenario;
      if (errors.empty()) errors = scenario.error();
      if (!are_cured_by_a_batch(scenario.error())) break;
    }
    return failure(std::move(errors));
  }

  const Scenario& scenario_;
  std::string part_;
  const DataFolders& folders_;
  Topology whole_;
  std::vector<std::string> parts_;  // that have failed
  std::vector<VertexId> left_;
};

}  // namespace

std::string lost_part_of(const std::string& what_if) {
  constexpr std::string_view kFail = "fail=";
  return what_if.starts_with(kFail) ? what_if.substr(kFail.size()) : "";
}

Result<Scenario> without_part(const Scenario& scenario, const std::string& part,
                              const DataFolders& folders) {
  return Loss(scenario, part, folders).left();
}

}  // namespace stepcast
