// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "expert_scenarios.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::source_folders;

struct Used {
  Scenario scenario;
  Prediction prediction;

  double from(const char* vertex) const { return sum(vertex, true); }
  double to(const char* vertex) const { return sum(vertex, false); }
  double busiest() const {
    double out = 0;
    for (const LinkTime& use : prediction.link_use) out = std::max(out, use.all().value());
    return out;
  }

 private:
  double sum(const std::string& vertex, bool outgoing) const {
    const Topology& topology = scenario.cluster.topology;
    double out = 0;
    for (std::size_t l = 0; l < prediction.link_use.size(); ++l) {
      const Link& link = topology.links()[l];
      if (link.kind != LinkKind::kNvlink) continue;
      if (topology.name(outgoing ? link.from : link.to) == vertex) {
        out += prediction.link_use[l].all().value();
      }
    }
    return out;
  }
};

Used used_by(const GptCase& c) {
  Used out{testing::gpt(c), {}};
  auto prediction = predict(out.scenario, source_folders(), {.trace = true});
  EXPECT_TRUE(prediction.has_value());
  if (prediction) out.prediction = std::move(*prediction);
  return out;
}

TEST(LinkUse, OfOneGpuIsNothing) { EXPECT_EQ(used_by({}).busiest(), 0); }

TEST(LinkUse, IsThereOnlyWhenAskedFor) {
  GptCase c;
  c.dp = 2;
  const auto prediction = predict(testing::gpt(c), source_folders());
  ASSERT_TRUE(prediction);
  EXPECT_TRUE(prediction->link_use.empty());
}

TEST(LinkUse, OfAPipelineGrowsWithItsMicroBatches) {
  GptCase c;
  c.pp = 2;
  c.tied = false;  // nothing but activations and their gradients between the stages
  c.global_batch = 8;
  const Used eight = used_by(c);
  c.global_batch = 16;
  const Used sixteen = used_by(c);
  ASSERT_GT(eight.from("node0/gpu0"), 0);
  EXPECT_NEAR(sixteen.from("node0/gpu0") / eight.from("node0/gpu0"), 2, 1e-3);
  // Gradients bring as many bytes back, and what one stage sends the other receives.
  EXPECT_NEAR(eight.from("node0/gpu0"), eight.to("node0/gpu1"), 1e-12);
  EXPECT_NEAR(eight.from("node0/gpu0"), eight.from("node0/gpu1"), 1e-3 * eight.busiest());
  EXPECT_EQ(eight.from("node0/gpu2"), 0);
}

TEST(LinkUse, OfTensorParallelismIsInsideThePassesAndStillCounted) {
  GptCase c;
  c.tp = 4;
  c.layers = 4;
  const Used four = used_by(c);
  c.layers = 8;
  const Used eight = used_by(c);
  const double embedding = 2 * four.busiest() - eight.busiest();  // beside the layers
  EXPECT_GT(four.busiest(), 0);
  EXPECT_GE(embedding, -1e-9 * four.busiest());
  EXPECT_LT(embedding, 0.5 * four.busiest());
  for (const char* gpu : {"node0/gpu1", "node0/gpu2", "node0/gpu3"}) {
    EXPECT_NEAR(four.from(gpu), four.from("node0/gpu0"), 1e-9 * four.busiest()) << gpu;
  }
  for (const LinkTime& use : four.prediction.link_use) {
    const Seconds tensor = use.by_traffic[static_cast<std::size_t>(TrafficKind::kTensor)];
    EXPECT_NEAR(tensor.value(), use.all().value(), 1e-6 * four.busiest());  // beside a norm
  }
  EXPECT_EQ(four.prediction.lost_on_links.value(), 0);
  // Passes wait for all of this traffic, so it takes no longer than the time that the step says
  // they wait.
  EXPECT_LE(four.busiest(), four.prediction.time.exposed_tp.value() * (1 + 1e-9));
}

// Experts over `ep` of `dp` ranks, with messages that are long enough to fill a link.
Scenario large_experts(const char* cluster, int dp, int ep, int sequence, const char* more_layout) {
  testing::ExpertCase c;
  c.cluster = cluster;
  c.dp = dp;
  c.ep = ep;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = sequence;
  c.more_layout = more_layout;
  return testing::with_experts(c);
}

// Two nodes: the exchange of tokens and the reduction of gradients beside it leave by the same
// NICs.
TEST(LinkUse, SaysWhoseTrafficMeetsOnANic) {
  const Scenario scenario =
      large_experts("dgx-h100", 16, 16, 4096, R"(,"overlap":{"grad_reduce":true})");
  const auto prediction = predict(scenario, source_folders(), {.trace = true});
  const auto apart = predict(scenario, source_folders(), {.trace = true, .contention = false});
  ASSERT_TRUE(prediction.has_value() && apart.has_value());
  int shared = 0;
  for (std::size_t l = 0; l < prediction->link_use.size(); ++l) {
    if (scenario.cluster.topology.links()[l].kind == LinkKind::kNvlink) continue;
    const LinkTime& use = prediction->link_use[l];
    const auto of = [&](TrafficKind kind) {
      return use.by_traffic[static_cast<std::size_t>(kind)];
    };
    EXPECT_GE(use.all(), of(TrafficKind::kExpert) + of(TrafficKind::kData));
    shared +=
        of(TrafficKind::kExpert) > of(TrafficKind::kData) && of(TrafficKind::kData).value() > 0;
  }
  EXPECT_GE(shared, 16);
  EXPECT_GT(prediction->lost_on_links.value(), 0);
  EXPECT_NEAR((prediction->lost_on_links + apart->step_time).value(), prediction->step_time.value(),
              1e-9);
  EXPECT_EQ(apart->lost_on_links.value(), 0);
}

// Eight nodes of eight under leaves of two, with uplinks for a quarter of their NICs. Nothing is
// shared where one group alone sends, and the slow uplinks are the step's own.
TEST(LinkUse, OfOneGroupOverSlowUplinksIsNothingLost) {
  const auto step = [](const std::string& oversubscription, const char* layout, const char* tokens,
                       bool contention) {
    const Scenario scenario = testing::scenario_from(
        R"({"stepcast":1,"model":{"hidden":4096,"layers":4,"heads":32,"vocab":32000},
            "cluster":{"base":"dgx-h100","nodes":8,"nodes_per_leaf_group":2,"oversubscription":)" +
        oversubscription + R"(},"training":{"global_batch":64,"sequence_length":)" + tokens +
        R"(},"layout":)" + layout + "}");
    const auto made = predict(scenario, source_folders(), {.contention = contention});
    EXPECT_TRUE(made.has_value());
    return made ? made->step_time.value() : 0;
  };
  struct Case {
    const char* layout;
    const char* tokens;
    bool sends_alone;
  };
  // 64 replicas reduce as instructions of the step, sharded ones gather beside that, and tensor
  // parallel ranks of two groups send inside its passes.
  for (const Case& c :
       {Case{R"({"dp":64})", "512", true}, Case{R"({"dp":64,"zero":3})", "512", false},
        Case{R"({"dp":2,"tp":32})", "16384", false}}) {
    const double alone = step("4", c.layout, c.tokens, false);
    const double shared = step("4", c.layout, c.tokens, true);
    EXPECT_GT(alone, 1.1 * step("1", c.layout, c.tokens, false)) << c.layout;
    EXPECT_LE(alone, shared * (1 + 1e-9)) << c.layout;
    if (c.sends_alone) {
      EXPECT_NEAR(alone, shared, 1e-9 * shared) << c.layout;
    }
  }
}

// Siblings that share the PCIe of a node lose to each other inside their passes.
TEST(LinkUse, CountsWhatSiblingsLoseInsidePasses) {
  const Scenario scenario =
      large_experts("a100-pcie-8", 8, 4, 2048, R"(,"order":"tp-cp-dp-ep-pp")");
  const auto prediction = predict(scenario, source_folders(), {.trace = true});
  const auto apart = predict(scenario, source_folders(), {.contention = false});
  ASSERT_TRUE(prediction.has_value() && apart.has_value());
  EXPECT_GT(prediction->lost_on_links, 0.01 * prediction->step_time);
  EXPECT_EQ((prediction->step_time - apart->step_time).value(), prediction->lost_on_links.value());
}

// Tensor parallel pairs across two nodes of one NIC each, whose replicated gradients no pass sends;
// Muon's update on the NICs of two stages, and on a PCIe link of a tenth.
TEST(LinkUse, IsNoMoreThanTheStep) {
  const char* kScenarios[] = {
      R"({"stepcast": 1, "cluster": {"base": "gcp-a2-ultra", "nodes": 2},
          "model": {"heads": 2, "hidden": 192, "layers": 1, "max_positions": 16366, "vocab": 1},
          "training": {"global_batch": 24}, "layout": {"tp": 2, "order": "dp-cp-tp-pp-ep"}})",
      R"({"stepcast": 1, "cluster": {"base": "gcp-a2-ultra", "nodes": 3}, "model": "gpt2",
          "training": {"global_batch": 12, "optimizer": "muon", "framework": "fsdp"},
          "layout": {"pp": 2}})",
      R"({"stepcast": 1, "cluster": {"base": "a100-pcie-8", "nodes": 2,
                                     "fail": ["node0/pcie0-node0/nic0=10%"]},
          "model": "gpt2",
          "training": {"global_batch": 16, "optimizer": "muon", "framework": "fsdp"}})"};
  for (const char* text : kScenarios) {
    const auto prediction =
        predict(testing::scenario_from(text), source_folders(), {.trace = true});
    ASSERT_TRUE(prediction.has_value()) << text;
    Seconds most;
    for (const LinkTime& link : prediction->link_use) most = std::max(most, link.all());
    EXPECT_GT(most.value(), 0) << text;
    EXPECT_GE(prediction->step_time.value(), most.value() * (1 - 1e-6)) << text;
  }
}

}  // namespace
}  // namespace stepcast
