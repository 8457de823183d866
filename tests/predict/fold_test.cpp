// SPDX-License-Identifier: Apache-2.0
// Folding and macro activities change no time: seeded random layouts and clusters up to 64 ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "predict/prediction.h"
#include "random_choice.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::pick;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;

// A legal layout of at most 64 ranks, in words for a cluster that `place` writes.
template <class Place>
std::string random_layout(std::mt19937& random, Place place) {
  GptCase c;
  const bool sharded = pick(random, {0, 0, 1}) == 1;
  if (sharded) {
    c.framework = pick(random, {0, 1}) == 0 ? "fsdp" : "deepspeed";
    c.zero = 3;
    c.dp = pick(random, {2, 4, 8, 12, 16});
  } else {
    c.framework = pick(random, {0, 1, 2}) == 0 ? "deepspeed" : "megatron";
    c.tp = pick(random, {1, 2, 4});
    c.pp = pick(random, {1, 2, 4});
    c.dp = pick(random, {1, 2, 3, 4});
    c.zero = c.framework == "deepspeed" ? pick(random, {0, 1}) : pick(random, {0, 1});
    c.sequence_parallel = c.tp > 1 && pick(random, {0, 1}) == 1;
    // DeepSpeed's pipeline has no interleaved schedule.
    if (c.pp > 1 && c.framework == "megatron") {
      constexpr std::array<std::pair<const char*, int>, 10> kSchedules = {{{"1f1b", 1},
                                                                           {"interleaved", 2},
                                                                           {"zb-h1", 1},
                                                                           {"zb-1p", 1},
                                                                           {"zb-v", 2},
                                                                           {"1f1b-v", 2},
                                                                           {"v-half", 2},
                                                                           {"v-min", 2},
                                                                           {"auto", 1},
                                                                           {"auto", 2}}};
      std::tie(c.schedule, c.virtual_stages) =
          kSchedules[static_cast<std::size_t>(pick(random, {0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}))];
    }
  }
  c.layers = c.pp * c.virtual_stages * pick(random, {1, 2});
  c.recompute = pick(random, {0, 1}) == 0 ? "none" : "full";
  c.global_batch = c.dp * c.pp * pick(random, {1, 2});
  if (!sharded && c.dp > 1 && pick(random, {0, 1}) == 1) {
    c.extra_layout = R"(, "overlap": {"grad_reduce": true, "param_gather": )" +
                     std::string(c.zero == 1 && pick(random, {0, 1}) == 1 ? "true}" : "false}");
  }
  c.cluster = place(c);
  return text_of(c);
}

// The layout may straddle nodes and NICs of its cluster.
std::string random_scenario(std::mt19937& random) {
  return random_layout(random, [&](GptCase&) {
    const int gpus_per_node = pick(random, {4, 8});
    return R"("base": "dgx-a100-80g", "gpus_per_node": )" + std::to_string(gpus_per_node) +
           R"(, "nics_per_node": )" + std::to_string(pick(random, {1, 2, 4})) +
           R"(, "oversubscription": )" + std::to_string(pick(random, {1, 2})) +
           R"(, "nodes_per_leaf_group": )" + std::to_string(pick(random, {1, 2, 32}));
  });
}

// Such a scenario on planes, on rails that do not meet, on a dragonfly or a torus, with
// hashed flows or nodes in another order, and with a switch or a cable that has failed or not.
// Replicas may stand on nodes that do not lie alike.
std::string random_fabric_scenario(std::mt19937& random) {
  return random_layout(random, [&](GptCase& c) {
    const int per_node = pick(random, {1, 2, 4});
    const int nodes = (c.tp * c.pp * c.dp + per_node - 1) / per_node;
    const std::string place =
        nodes > 1 ? fmt::format("node[{}-{},0-{}]", nodes / 2, nodes - 1, nodes / 2 - 1) : "node0";
    const std::string torus =
        nodes % 2 == 0 ? fmt::format("[{}, 2]", nodes / 2) : fmt::format("[{}]", nodes);
    const std::string fabrics[] = {
        R"("planes": 2, "nodes_per_leaf_group": 2)",
        R"("rails_joined": false, "planes": 3)",
        R"("ecmp": "hashed", "uplinks": 2, "nodes_per_leaf_group": 1)",
        R"("ecmp": "hashed", "uplinks": 3, "ecmp_flows": 2, "planes": 2,
           "nodes_per_leaf_group": 2)",
        R"("nodes_per_leaf_group": 2, "place": ")" + place + "\"",
        R"("fabric": "torus", "router_link": "10 GB/s", "torus": )" + torus,
        fmt::format(R"("fabric": "dragonfly", "router_link": "10 GB/s", "global_link": "5 GB/s",
            "nodes_per_router": {}, "routers_per_group": {})",
                    pick(random, {1, 2}), pick(random, {1, 2}))};
    std::string out =
        fmt::format(R"("base": "dgx-a100-80g", "gpus_per_node": {}, "nics_per_node": {}, {})",
                    per_node, pick(random, {1, per_node}),
                    fabrics[static_cast<std::size_t>(pick(random, {0, 1, 2, 3, 4, 5, 6}))]);
    if (out.find("planes\": 2") != std::string::npos && pick(random, {0, 1}) == 1) {
      out += R"(, "fail": "plane1/leaf0=50%")";
    }
    if (out.find("torus") != std::string::npos && nodes > 3 && pick(random, {0, 1}) == 1) {
      out += R"(, "fail": "leaf0-leaf1")";
    }
    return out;
  });
}

// Such a scenario with some GPUs slow, some of another model, and a slow NIC.
std::string random_uneven_scenario(std::mt19937& random) {
  return random_layout(random, [&](GptCase& c) {
    const int per_node = pick(random, {4, 8}), gpus = c.tp * c.pp * c.dp;
    const auto gpu = [&] {
      const int device = std::uniform_int_distribution<int>(0, gpus - 1)(random);
      return fmt::format("node{}/gpu{}", device / per_node, device % per_node);
    };
    std::vector<std::string> failed, others;
    for (int i = pick(random, {0, 1, 1, 2}); i > 0; --i) {
      failed.push_back(fmt::format("\"{}={}%\"", gpu(), pick(random, {50, 80, 95})));
    }
    if (pick(random, {0, 1}) == 1) failed.emplace_back("\"node0=90%\"");
    if (pick(random, {0, 1}) == 1) failed.emplace_back("\"node0/nic0=50%\"");
    if (pick(random, {0, 1}) == 1) others.push_back(fmt::format("\"{}=h100-sxm5-80g\"", gpu()));
    if (gpus > per_node) others.emplace_back("\"node1=a100-sxm4-40g\"");
    return fmt::format(R"("base": "dgx-a100-80g", "gpus_per_node": {}, "nics_per_node": {},
        "nodes_per_leaf_group": {}, "fail": [{}], "accelerator_of": [{}])",
                       per_node, pick(random, {1, 2, 4}), pick(random, {1, 2, 32}),
                       fmt::join(failed, ", "), fmt::join(others, ", "));
  });
}

// This machine has fewer cores than ranks or a core for each.
std::string random_local_scenario(std::mt19937& random) {
  return random_layout(random, [&](GptCase& c) {
    c.precision = "fp32";
    return R"("base": "local", "shared_cores": )" + std::to_string(pick(random, {0, 1, 2, 3, 6}));
  });
}

Prediction forecast_of_text(const std::string& text, const PredictOptions& options) {
  auto prediction = predict(scenario_from(text), source_folders(), options);
  EXPECT_TRUE(prediction.has_value())
      << text << (prediction ? std::string() : to_string(prediction.error()));
  return prediction ? std::move(*prediction) : Prediction{};
}

// Nodes around one switch, each with so many GPUs; the first has a NIC of a tenth. With `apart`
// each GPU has a PCIe switch and a NIC of its own.
std::string graph_of(const std::vector<int>& gpus_of_nodes, bool apart = false) {
  std::string vertices = R"({"name": "tor", "kind": "leaf"})";
  std::vector<std::string> links;
  const auto join = [&](const std::string& from, const std::string& to, const char* capacity) {
    links.push_back(
        fmt::format(R"({{"between": ["{}", "{}"], "capacity": "{}"}})", from, to, capacity));
  };
  for (std::size_t node = 0; node < gpus_of_nodes.size(); ++node) {
    const auto add = [&](const std::string& name, const char* kind) {
      vertices += fmt::format(R"(, {{"name": "node{0}/{1}", "kind": "{2}", "node": {0}}})", node,
                              name, kind);
    };
    const std::string place = fmt::format("node{}/", node);
    for (int gpu = 0; gpu < gpus_of_nodes[node]; ++gpu) {
      const int own = apart ? gpu : 0;
      const std::string pcie = fmt::format("pcie{}", own), nic = fmt::format("nic{}", own);
      add(fmt::format("gpu{}", gpu), "gpu");
      if (gpu == own) {
        add(pcie, "pcie");
        add(nic, "nic");
        join(place + pcie, place + nic, "31.5 GB/s");
        join(place + nic, "tor", node == 0 && !apart ? "2.5 GB/s" : "25 GB/s");
      }
      join(place + fmt::format("gpu{}", gpu), place + pcie, "31.5 GB/s");
    }
  }
  return fmt::format(R"("vertices": [{}], "links": [{}])", vertices, fmt::join(links, ", "));
}

std::string on_graph(const std::string& graph, const std::string& layout) {
  return fmt::format(R"({{"stepcast": 1, "model": "gpt2", "cluster": {{"accelerator":
      "rtx4090-24g", "network": "roce", {}}}, "training": {{"global_batch": 12}},
      "layout": {}}})",
                     graph, layout);
}

TEST(Folding, GivesTheTimesOfTheRunOfEveryRank) {
  std::mt19937 random(20210409);
  std::size_t folded_classes = 0, ranks = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string text = random_scenario(random);
    const Prediction folded = forecast_of_text(text, {});
    const Prediction whole = forecast_of_text(text, {.fold = false});
    const double step = whole.step_time.value();
    EXPECT_NEAR(folded.step_time.value(), step, 1e-9 * step) << text;
    EXPECT_NEAR(folded.bubble_fraction, whole.bubble_fraction, 1e-8) << text;
    EXPECT_EQ(folded.peak_memory, whole.peak_memory) << text;
    EXPECT_NEAR(folded.time.total().value(), folded.step_time.value(), 1e-9 * step) << text;
    folded_classes += folded.rank_classes.size();
    ranks += whole.rank_classes.size();
  }
  EXPECT_LT(folded_classes * 2, ranks) << "folding found no symmetry to use";
}

TEST(Folding, GivesTheTimesOfEveryRankOnOtherFabrics) {
  std::mt19937 random(20261129);
  std::size_t folded_classes = 0, ranks = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string text = random_fabric_scenario(random);
    const Prediction folded = forecast_of_text(text, {});
    const Prediction whole = forecast_of_text(text, {.fold = false});
    const double step = whole.step_time.value();
    EXPECT_NEAR(folded.step_time.value(), step, 1e-9 * step) << text;
    EXPECT_EQ(folded.peak_memory, whole.peak_memory) << text;
    folded_classes += folded.rank_classes.size();
    ranks += whole.rank_classes.size();
  }
  EXPECT_LT(folded_classes * 3, ranks * 2) << "folding found no symmetry to use";
}

// Groups pay in their passes for the links that they share with their siblings, and those lie
// differently here: context-parallel groups of three on nodes of eight cross a leaf or do not; the
// last of four nodes has two GPUs; one node has a slow NIC, or GPUs share a node or do not.
TEST(Folding, TellsRanksApartWhoseSiblingsLieDifferently) {
  const std::vector<std::string> scenarios = {
      R"({"stepcast": 1, "model": "llama-3.2-1b", "cluster": {"base": "aws-p5", "nodes": 6,
          "nodes_per_leaf_group": 2}, "training": {"global_batch": 16, "sequence_length": 4092},
          "layout": {"cp": 3}})",
      R"({"stepcast": 1, "model": {"layers": 1, "hidden": 64, "heads": 2, "vocab": 256, "moe":
          {"dispatcher": "deepep", "experts": 2, "ffn": 64, "top_k": 1}}, "cluster": {"base":
          "dgx-h800", "gpus": 26}, "training": {"global_batch": 26, "cuda_graphs": "full"},
          "layout": {"ep": 2, "order": "dp-ep-cp-pp-tp"}})",
      on_graph(graph_of({2, 2, 4}), R"({"tp": 2, "order": "dp-cp-tp-pp-ep"})"),
      // Nodes 3 and 4 have GPUs 6 to 11, whatever the fullest node holds.
      on_graph(graph_of({2, 2, 2, 2, 4}), R"({"tp": 2, "order": "dp-cp-tp-pp-ep"})"),
      // Two GPUs of one node are a domain, and those of two nodes with equal links are not.
      on_graph(graph_of({2, 1, 1, 2}, true), R"({"tp": 2, "dp": 3})")};
  for (const std::string& text : scenarios) {
    const Prediction folded = forecast_of_text(text, {});
    const Prediction whole = forecast_of_text(text, {.fold = false});
    const double step = whole.step_time.value();
    EXPECT_GT(step, 0) << text;
    EXPECT_NEAR(folded.step_time.value(), step, 1e-9 * step) << text;
    EXPECT_NEAR(folded.bubble_fraction, whole.bubble_fraction, 1e-8) << text;
    EXPECT_LT(folded.rank_classes.size(), whole.rank_classes.size()) << text;
  }
}

TEST(Folding, TellsApartRanksOfOtherAndOfSlowGpus) {
  std::mt19937 random(20261128);
  std::size_t folded_classes = 0, ranks = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string text = random_uneven_scenario(random);
    const Prediction folded = forecast_of_text(text, {});
    const Prediction whole = forecast_of_text(text, {.fold = false});
    const double step = whole.step_time.value();
    EXPECT_GT(step, 0) << text;
    EXPECT_NEAR(folded.step_time.value(), step, 1e-9 * step) << text;
    EXPECT_NEAR(folded.bubble_fraction, whole.bubble_fraction, 1e-8) << text;
    EXPECT_EQ(folded.fits, whole.fits) << text;
    EXPECT_EQ(folded.device_memory, whole.device_memory) << text;
    folded_classes += folded.rank_classes.size();
    ranks += whole.rank_classes.size();
  }
  EXPECT_LT(folded_classes * 4, ranks * 3) << "folding found no symmetry to use";
}

TEST(Folding, GivesTheTimesOfTheRunOfEveryRankOnSharedCores) {
  std::mt19937 random(20240229);
  std::size_t folded_classes = 0, ranks = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string text = random_local_scenario(random);
    const Prediction folded = forecast_of_text(text, {});
    const Prediction whole = forecast_of_text(text, {.fold = false});
    const double step = whole.step_time.value();
    EXPECT_GT(step, 0);
    EXPECT_NEAR(folded.step_time.value(), step, 1e-9 * step) << text;
    EXPECT_NEAR(folded.bubble_fraction, whole.bubble_fraction, 1e-8) << text;
    EXPECT_NEAR(folded.time.total().value(), folded.step_time.value(), 1e-9 * step) << text;
    folded_classes += folded.rank_classes.size();
    ranks += whole.rank_classes.size();
  }
  EXPECT_LT(folded_classes * 2, ranks) << "folding found no symmetry to use";
}

TEST(Contention, IsWhatSharedLinksCost) {
  std::mt19937 random(20240229);
  int slower = 0;
  for (int i = 0; i < 30; ++i) {
    const std::string text = random_scenario(random);
    const double shared = forecast_of_text(text, {}).step_time.value();
    const double alone = forecast_of_text(text, {.contention = false}).step_time.value();
    EXPECT_LE(alone, shared * (1 + 1e-9)) << text;
    slower += shared > alone * 1.001 ? 1 : 0;
  }
  EXPECT_GT(slower, 3) << "no two transfers met on a link";
}

TEST(Folding, EveryRankIsInOneClass) {
  std::mt19937 random(3);
  for (int i = 0; i < 10; ++i) {
    const std::string text = random_scenario(random);
    const Scenario scenario = scenario_from(text);
    const Prediction folded = forecast_of_text(text, {});
    std::vector<int> seen(static_cast<std::size_t>(scenario.cluster.gpus()), 0);
    for (const RankClass& rank_class : folded.rank_classes) {
      for (const RankId rank : rank_class.ranks) ++seen[rank.index()];
    }
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
}

// A chunk as one macro activity against every kernel its own task. Traffic beside the kernels
// slows both forms by the same fluid rule only where no run is starved by its host, so overlap is
// off here; each of n kernels rounds to a picosecond.
TEST(MacroActivities, GiveTheTimesOfTheirKernels) {
  std::mt19937 random(11);
  for (int i = 0; i < 12; ++i) {
    GptCase c;
    c.tp = pick(random, {1, 2});
    c.pp = pick(random, {1, 2, 4});
    c.dp = pick(random, {1, 2});
    c.layers = c.pp * 2;
    c.hidden = pick(random, {256, 512, 2048});
    c.sequence = pick(random, {128, 1024});
    c.global_batch = c.dp * 4;
    c.framework = pick(random, {0, 1}) == 0 ? "megatron" : "deepspeed";
    c.recompute = pick(random, {0, 1}) == 0 ? "none" : "full";
    const Prediction macro = forecast_of_text(text_of(c), {});
    const Prediction expanded = forecast_of_text(text_of(c), {.expand = true});
    EXPECT_GT(expanded.simulated_tasks, 10 * macro.simulated_tasks);
    EXPECT_NEAR(macro.step_time.value(), expanded.step_time.value(),
                1e-9 * expanded.step_time.value() + 1e-12 * 1e5)
        << text_of(c);
  }
}

}  // namespace
}  // namespace stepcast
