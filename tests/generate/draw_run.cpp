// SPDX-License-Identifier: Apache-2.0
// The keys of `run`, and the profile.
#include <fmt/format.h>

#include <algorithm>

#include "generate/sketch.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

json checkpoint(Draw& draw) {
  json out = json::object();
  if (draw.chance(0.5)) out["bytes"] = fmt::format("{} GB", draw.number({0, 1, 100, 20000}));
  if (draw.chance(0.5)) out["bandwidth"] = fmt::format("{} GB/s", draw.number({1, 10, 500}));
  if (draw.chance(0.4)) out["interval"] = draw.word({"30 s", "10 min", "2 h", "3 d"});
  return out;
}

json run(Draw& draw) {
  json out = json::object();
  const auto add = [&](double chance, const char* key, json value) {
    if (draw.chance(chance)) out[key] = std::move(value);
  };
  const bool tokens = draw.chance(0.7);
  if (tokens) out["tokens"] = draw.of(std::vector<double>{1, 1e6, 3e9, 2e12, 1e15});
  if (tokens) add(0.3, "deadline", draw.word({"1 h", "30 d", "2000 d"}));
  if (tokens) add(0.3, "budget", draw.of(std::vector<double>{0, 1000, 5e6}));
  add(0.4, "price_per_gpu_hour", draw.of(std::vector<double>{0, 0.5, 2.5}));
  add(0.6, "failures_per_node_day", draw.of(std::vector<double>{0, 1e-6, 0.001, 0.1, 20, 20}));
  add(0.3, "failures_per_day", draw.of(std::vector<double>{0, 0.5, 100}));
  if (draw.chance(0.4)) out["checkpoint"] = checkpoint(draw);
  add(0.3, "restart", draw.word({"0 s", "90 s", "10 min", "5 h"}));
  add(0.3, "spare_nodes", draw.number({0, 1, 4}));
  add(0.3, "repair", draw.word({"0 s", "1 h", "3 d"}));
  if (draw.chance(0.25)) {
    out["stragglers"] = {{"per_node_day", draw.chance(0.5) ? 0.01 : 0.0},
                         {"slowdown", draw.chance(0.5) ? 0.3 : 2.0},
                         {"detection", draw.word({"0 s", "10 min", "1 d"})}};
  }
  if (draw.chance(0.25)) {
    out["preemption"] = {{"per_node_day", draw.of(std::vector<double>{0, 0.2, 5})}};
    if (draw.chance(0.5)) out["preemption"]["notice"] = draw.word({"0 s", "30 s", "2 min"});
  }
  if (draw.chance(0.25)) {
    out["beside"] = {{"bring_up", draw.word({"0 s", "3 d"})},
                     {"evaluation", draw.of(std::vector<double>{0, 0.02})},
                     {"thrown_away", draw.of(std::vector<double>{0, 0.3})}};
    if (draw.chance(0.5)) {
      out["beside"]["long_context"] = {{"tokens", 1e9}, {"token_cost", 1.5}};
    }
  }
  add(0.2, "pue", draw.of(std::vector<double>{1, 1.2}));
  return out;
}

}  // namespace

void draw_run(Draw& draw, Sketch& s) {
  if (draw.chance(0.3)) s.set("run", run(draw));
  if (draw.chance(0.15)) s.set("profile", "none");
}

// Another job like this one, on as many nodes of a cluster twice as large.
void draw_other_jobs(Draw& draw, Sketch& s) {
  const ClusterSpec& spec = s.cluster.spec;
  json& cluster = s.file["cluster"];
  const bool whole = cluster.is_object() && cluster.contains("nodes") && !spec.is_graph &&
                     spec.failed.empty() && spec.other_gpus.empty() && spec.sites == 1 &&
                     spec.nics_per_node > 0 && spec.gpus == spec.nodes * spec.gpus_per_node;
  const bool small = spec.nodes <= 2 && !spec.accelerator.is_cpu();
  if (!whole || !small || s.states("training.outer") || !draw.chance(0.05)) return;
  json job = s.file;
  for (const char* of_all : {"cluster", "software", "run"}) job.erase(of_all);
  cluster["nodes"] = 2 * spec.nodes;
  cluster["nvlink_domain_nodes"] = std::min(spec.nvlink_domain_nodes, spec.nodes);
  const bool apart = spec.nodes == 1 || spec.nvlink_domain_nodes > 1 || draw.chance(0.3);
  const std::string nodes = spec.nodes == 1 ? "1" : apart ? "2-3" : "1,3";
  s.file["other_jobs"] = {{{"nodes", nodes}, {"scenario", std::move(job)}}};
}

}  // namespace stepcast::generate
