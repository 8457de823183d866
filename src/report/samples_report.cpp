// SPDX-License-Identifier: Apache-2.0
#include "report/samples_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostListed = 5;  // of each kind

Json shares_array(const std::vector<SampleShare>& shares, const char* place) {
  Json out = Json::array();
  for (const SampleShare& share : shares) {
    Json one;
    one[place] = share.place;
    one["samples"] = share.samples;
    put(one, "cost_s", share.cost.value());
    out.push_back(std::move(one));
  }
  return out;
}

void add_rows(const std::vector<SampleShare>& shares, const StepSamples& samples, const auto& words,
              TextTable& table) {
  for (const SampleShare& share : std::span(shares).first(std::min(kMostListed, shares.size()))) {
    if (!(share.cost.value() > 0)) break;
    table.add_row(
        {words(share.place),
         percent_text(static_cast<double>(share.samples) / static_cast<double>(samples.count), 0),
         time_text(share.cost)});
  }
}

}  // namespace

Written samples_table(const Scenario& scenario, const Prediction& prediction, Form form) {
  const StepSamples& samples = prediction.samples;
  if (samples.count == 0) return {};
  Written out = heading("Samples", form);
  out += line(fmt::format("{} steps of seed {}: a median of {}, 90 % from {} to {}; {} on the mean",
                          samples.count, samples.seed, time_text(samples.p50),
                          time_text(samples.p5), time_text(samples.p95), time_text(samples.mean)),
              form) +
         paragraph_end(form);
  if (samples.ranks.empty() && samples.p95 == samples.p5) {
    return out + line("Nothing was drawn: say how much steps scatter, as with --set "
                      "cluster.jitter=0.03 --set cluster.spread=0.01.",
                      form);
  }
  TextTable table({{"who", Align::kLeft}, {"on the critical path"}, {"costs on the mean"}});
  const RankGrid grid(scenario.layout);
  const Cluster& cluster = scenario.cluster;
  if (scenario.layout.pp > 1) {
    add_rows(
        samples.stages, samples, [](auto stage) { return fmt::format("stage {}", stage); }, table);
  }
  add_rows(
      samples.nodes, samples, [](auto node) { return fmt::format("node {}", node); }, table);
  add_rows(
      samples.ranks, samples,
      [&](auto rank) {
        const VertexId gpu = cluster.topology.gpus()[static_cast<std::size_t>(rank)];
        return fmt::format("rank {} ({}, stage {})", rank, cluster.topology.name(gpu),
                           grid.point(RankId(rank)).pp);
      },
      table);
  return out + shown(table, form);
}

Json samples_object(const Scenario& scenario, const Prediction& prediction) {
  const StepSamples& samples = prediction.samples;
  Json out;
  out["count"] = samples.count;
  out["seed"] = samples.seed;
  for (const auto& [key, time] :
       {std::pair("mean_s", samples.mean), std::pair("p5_s", samples.p5),
        std::pair("p50_s", samples.p50), std::pair("p95_s", samples.p95)}) {
    put(out, key, time.value());
  }
  out["stages"] = shares_array(samples.stages, "stage");
  out["nodes"] = shares_array(samples.nodes, "node");
  out["ranks"] = shares_array(samples.ranks, "rank");
  for (std::size_t i = 0; i < samples.ranks.size(); ++i) {
    const DeviceId device(samples.ranks[i].place);
    out["ranks"][i]["node"] = scenario.cluster.node_of(device);
  }
  return out;
}

}  // namespace stepcast
