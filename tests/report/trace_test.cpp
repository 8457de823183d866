// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cluster/host_link.h"
#include "core/each.h"
#include "predict/attribution.h"
#include "program/instruction.h"
#include "report/made_prediction.h"
#include "report/memory_timeline.h"

namespace stepcast {
namespace {

using nlohmann::json;
using stepcast::testing::made_prediction;
using stepcast::testing::made_scenario;

TraceSlice slice(std::int32_t rank_class, Stream stream, const char* name, double start,
                 double duration, bool collective = false) {
  return {rank_class,      stream, name, Seconds(start), Seconds(duration),
          Phase::kForward, 0,      0,    collective,     collective ? 64 : 0};
}

// A pass with two kernels on stage 0, its send, the receive and a pass on stage 1.
Prediction traced() {
  Prediction out = made_prediction();
  out.slices = {slice(0, Stream::kCompute, "forward", 0, 2e-6),
                slice(0, Stream::kCompute, "qkv", 0, 1e-6),
                slice(0, Stream::kCompute, "mlp", 1e-6, 1.0000001e-6),
                slice(0, Stream::kReduce, "grad_all_reduce", 2e-6, 1e-6, true),
                slice(0, Stream::kSendForward, "send", 2e-6, 1e-6, true),
                slice(1, Stream::kReceiveForward, "receive", 0, 3e-6, true),
                slice(1, Stream::kCompute, "forward", 3e-6, 2e-6)};
  out.memory_samples = {{0, Seconds(1e-6), {1, 2, 3, 4, 5, 6}},
                        {1, Seconds(3e-6), {1, 0, 0, 0, 0, 0}}};
  return out;
}

json trace() { return json::parse(trace_json(made_scenario(), traced()).text()); }

std::vector<json> events(const json& trace, const std::string& phase) {
  std::vector<json> out;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) out.push_back(event);
  }
  return out;
}

TEST(Trace, HasTheShapeOfAProfilerTrace) {
  const json out = trace();
  EXPECT_EQ(out["schemaVersion"], 1);
  EXPECT_EQ(out["distributedInfo"]["world_size"], 4);
  EXPECT_EQ(out["deviceProperties"][0]["name"], "Made \"GPU\"");
  EXPECT_EQ(out["displayTimeUnit"], "ms");
  EXPECT_EQ(events(out, "X").size(), 9u);  // of both stages a mark of the step
}

TEST(Trace, SlicesOfATrackNestStrictly) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : each_of(events(trace(), "X"))) {
    const double start = event["ts"], length = event["dur"];
    tracks[{event["pid"], event["tid"]}].emplace_back(start, start + length);
  }
  ASSERT_GT(tracks.size(), 1u);
  for (const auto& [track, slices] : tracks) {
    for (const auto& a : slices) {
      for (const auto& b : slices) {
        if (&a == &b || a.second <= b.first || b.second <= a.first) continue;
        const bool nested = (a.first <= b.first && b.second <= a.second) ||
                            (b.first <= a.first && a.second <= b.second);
        EXPECT_TRUE(nested) << a.first << ".." << a.second << " and " << b.first << ".."
                            << b.second;
      }
    }
  }
}

TEST(Trace, PassesAreAnnotationsAndKernelsAreKernels) {
  AtLeast kernels(1), passes(1);
  for (const json& event : each_of(events(trace(), "X"))) {
    if (event["name"] == "qkv") {
      ++kernels;
      EXPECT_EQ(event["cat"], "kernel");
    }
    if (event["name"] == "forward" && event["pid"] == 0) {
      ++passes;
      EXPECT_EQ(event["cat"], "gpu_user_annotation");
    }
  }
}

TEST(Trace, NamesCommunicationAsNcclDoes) {
  std::set<std::string> names;
  for (const json& event : each_of(events(trace(), "X"))) {
    if (event["args"].contains("Collective name")) names.insert(event["name"]);
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"ncclDevKernel_GradAllReduce", "ncclDevKernel_SendRecv"}));
}

// Offloaded activations, as the forecast of such a program records them.
TEST(Trace, NamesCopiesAsCudaDoes) {
  Instruction leaves{Stream::kCopyOut, "copy_out",
                     ActivationCopy{{CopyDirection::kToHost, 64}, {}, 0, 1}};
  Instruction returns{Stream::kCopyIn, "copy_in",
                      ActivationCopy{{CopyDirection::kFromHost, 64}, {}, 0, 1}};
  Prediction prediction = made_prediction();
  prediction.slices = {slice_of(leaves, 0, Seconds(0), Seconds(1e-6)),
                       slice_of(returns, 0, Seconds(2e-6), Seconds(1e-6))};
  const json out = json::parse(trace_json(made_scenario(), prediction).text());
  std::vector<std::string> names;
  for (const json& event : events(out, "X")) {
    EXPECT_EQ(event["cat"], "gpu_memcpy");
    EXPECT_EQ(event["args"]["bytes"], 64);
    EXPECT_FALSE(event["args"].contains("Collective name"));
    names.push_back(event["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"Memcpy DtoH (Device -> Pinned)",
                                             "Memcpy HtoD (Pinned -> Device)"}));
}

TEST(Trace, JoinsASendToItsReceive) {
  const json out = trace();
  const auto starts = events(out, "s");
  const auto ends = events(out, "f");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0]["id"], ends[0]["id"]);
  EXPECT_EQ(starts[0]["pid"], 0);  // the lowest rank of stage 0
  EXPECT_EQ(ends[0]["pid"], 2);
}

TEST(Trace, DrawsTheLowestRankOfEachStage) {
  Prediction prediction = traced();
  prediction.rank_classes.push_back(prediction.rank_classes[0]);
  prediction.rank_classes.back().ranks = {RankId(std::int32_t{9})};
  prediction.slices.push_back(slice(2, Stream::kCompute, "forward", 0, 2e-6));
  prediction.memory_samples.push_back({2, Seconds(0), {}});
  EXPECT_EQ(trace_json(made_scenario(), prediction), trace_json(made_scenario(), traced()));
}

TEST(Trace, CountsMemoryByPart) {
  const auto counters = events(trace(), "C");
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0]["args"]["parameters"], 1);
  EXPECT_EQ(counters[0]["args"]["workspace"], 6);
}

TEST(Trace, IsWholeWithoutAnySlice) {
  const json out = json::parse(trace_json(made_scenario(), made_prediction()).text());
  EXPECT_TRUE(events(out, "X").empty());
}

TEST(MemoryTimeline, GivesEverySampleInBothForms) {
  const Prediction prediction = traced();
  const std::string csv = memory_timeline_csv(prediction);
  EXPECT_NE(csv.find("0-1,0,1e-06,1,2,3,4,5,6,21\n"), std::string::npos) << csv;
  const json out = json::parse(memory_timeline_json(prediction).text());
  EXPECT_EQ(out["classes"][0]["samples"].size(), 1u);
  EXPECT_EQ(out["classes"][1]["samples"][0][1], 1);
  EXPECT_EQ(out["columns"].size(), out["classes"][0]["samples"][0].size());
}

}  // namespace
}  // namespace stepcast
