// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// A step of data parallelism over the network alone: every GPU of a node sends.
double step_of(const std::string& cluster, const std::string& fail = "") {
  std::vector<std::string> words{"predict",     "--model",        "gpt3-1.3b", "--cluster", cluster,
                                 "--seq",       "1024",           "--tp",      "1",         "--pp",
                                 "1",           "--global-batch", "16",        "--zero",    "1",
                                 "--framework", "megatron",       "--format",  "json"};
  if (!fail.empty()) words.insert(words.end(), {"--set", "cluster.fail=" + fail});
  const Outcome result = run(words);
  EXPECT_EQ(result.code, 0) << result.error;
  return result.json()["step_time_s"];
}

TEST(TopologyCommand, WritesAFileThatReadsBackAsTheSameGraph) {
  const Folder folder;
  const std::string file = folder / "mine.json";
  ASSERT_EQ(run({"topology", "show", "dgx-h100x2", "--format", "json", "-o", file}).code, 0);
  const Outcome sound = run({"topology", "check", file});
  EXPECT_EQ(sound.code, 0) << sound.error;
  EXPECT_TRUE(has(sound.out, "16 GPUs")) << sound.out;
  const Outcome again = run({"topology", "show", file, "--format", "json"});
  EXPECT_TRUE(again.out == read_file(file));
  // Its figures are those of the graph, and it forecasts what the cluster does.
  const double whole = step_of("dgx-h100x2");
  EXPECT_NEAR(step_of(file), whole, 0.02 * whole);
}

TEST(TopologyCommand, ForecastsAClusterWithFailedParts) {
  const auto step = [](const std::string& fail) { return step_of("dgx-h100x2", fail); };
  const double whole = step("");
  EXPECT_GT(step("node1/nic3"), whole);
  EXPECT_GT(step("node1/nic3=50%"), whole);
  EXPECT_GT(step("leaf3"), whole);
  const Outcome gpu = run(predict_words({"--set", "cluster.fail=node0/gpu0"}));
  expect_refused(gpu);  // 15 GPUs are no multiple of 8
  EXPECT_TRUE(has(gpu.error, "15")) << gpu.error;
  const Outcome none = run(predict_words({"--set", "cluster.fail=node7/nic3"}));
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "has no part 'node7/nic3'")) << none.error;
  const Outcome plan =
      run({"plan", "--model", "gpt3-1.3b", "--cluster", "dgx-h100x2", "--global-batch", "32",
           "--set", "cluster.fail=node1/nic3", "--replays", "20"});
  EXPECT_EQ(plan.code, 0) << plan.error;
}

// 16 hosts of one GPU and one NIC each on 16 switches that form a ring: a torus of one dimension.
TEST(TopologyCommand, SwitchesOfOneTierMayFormARing) {
  const Folder folder;
  json file{{"stepcast_cluster", 1},          {"name", "ring"},
            {"accelerator", "a100-sxm4-80g"}, {"network", "roce"},
            {"vertices", json::array()},      {"links", json::array()}};
  const int count = 16;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), next = std::to_string((i + 1) % count);
    file["vertices"].push_back({{"name", "g" + n}, {"kind", "gpu"}, {"node", i}});
    file["vertices"].push_back({{"name", "n" + n}, {"kind", "nic"}, {"node", i}});
    file["vertices"].push_back({{"name", "s" + n}, {"kind", "leaf"}});
    file["links"].push_back({{"between", {"g" + n, "n" + n}}, {"capacity", "31.5 GB/s"}});
    file["links"].push_back({{"between", {"n" + n, "s" + n}}, {"capacity", "200 Gb/s"}});
    file["links"].push_back({{"between", {"s" + n, "s" + next}}, {"capacity", "200 Gb/s"}});
  }
  const std::string path = folder / "ring.json";
  write_file(path, file.dump());
  const Outcome sound = run({"topology", "check", path});
  EXPECT_EQ(sound.code, 0) << sound.error;
  const Outcome step = run({"predict", "--model", "gpt3-350m", "--cluster", path, "--global-batch",
                            "32", "--format", "json"});
  ASSERT_EQ(step.code, 0) << step.error;
  EXPECT_GT(step.json()["step_time_s"], 0);

  // A link that has no way back, a hundred times, is said once.
  for (json& link : file["links"]) {
    const json ends = link["between"];
    link.erase("between");
    link["from"] = ends[0];
    link["to"] = ends[1];
  }
  write_file(path, file.dump());
  const Outcome broken = run({"topology", "check", path});
  expect_refused(broken);
  EXPECT_EQ(std::count(broken.error.begin(), broken.error.end(), '\n'), 3) << broken.error;
  EXPECT_TRUE(
      has(broken.error, "has no way back (use \"between\" for a cable); and 15 more like it"))
      << broken.error;
}

}  // namespace
}  // namespace stepcast::testing
