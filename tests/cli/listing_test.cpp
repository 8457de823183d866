// SPDX-License-Identifier: Apache-2.0
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <set>

#include "core/each.h"

#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

TEST(ShowCommand, ListsModelsWithExactCounts) {
  const json out = run({"show", "models", "--format", "json"}).json();
  EXPECT_GE(out.size(), 40u);
  const json one = run({"show", "models", "llama-2-7b", "--format", "json"}).json();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0]["parameters"], 6738415616);  // Llama 2 model card's checkpoint
}

TEST(ShowCommand, HasNoModelThatCannotBeForecast) {
  for (const json& model : each_of(run({"show", "models", "--format", "json"}).json())) {
    EXPECT_TRUE(model["forecast"]) << model["name"];
  }
}

TEST(ShowCommand, SaysWhereVisionIsNotModelled) {
  const json seeing = run({"show", "models", "gemma-3-4b", "--format", "json"}).json();
  EXPECT_TRUE(seeing[0]["forecast"]);
  EXPECT_EQ(seeing[0]["not_modelled"], "vision");
  EXPECT_TRUE(has(run({"show", "models", "gemma-3-4b"}).out, "vision is not modelled"));
  // The smallest of the family has no encoder.
  EXPECT_FALSE(
      run({"show", "models", "gemma-3-1b", "--format", "json"}).json()[0].contains("not_modelled"));
}

TEST(ShowCommand, SaysThatNoNameMatches) {
  const Outcome none = run({"show", "models", "zzz"});
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "no name contains 'zzz' (stepcast show models lists all)"))
      << none.error;
}

TEST(ShowCommand, ListsClustersAndGpusWithTheirSources) {
  for (const char* topic : {"clusters", "gpus"}) {
    const json out = run({"show", topic, "--format", "json"}).json();
    EXPECT_GE(out.size(), 10u);
    for (const json& entry : out) EXPECT_FALSE(entry["sources"].empty()) << entry["name"];
  }
}

TEST(ShowCommand, ListsSchedulesThatPredictTakes) {
  for (const json& schedule : each_of(run({"show", "schedules", "--format", "json"}).json())) {
    std::vector<std::string> more{"--format", "json", "--schedule", schedule["name"]};
    if (schedule["name"] == "interleaved" || schedule["name"] == "looped-bfs")
      more.insert(more.end(), {"--vpp", "2"});
    const Outcome result = run(predict_words(more));
    EXPECT_NE(result.code, 2) << schedule["name"] << result.error;
    EXPECT_EQ(result.json()["resolved"]["layout"]["schedule"], schedule["name"]);
  }
}

// Exported, and read as a file, a schedule gives the same forecast but for its name. A file says
// neither that the model comes back up nor that the gradient norm is checked later.
TEST(ShowCommand, ListsSchedulesThatGoThroughAFile) {
  const Folder folder;
  const std::string file = folder / "order.csv";
  for (const json& schedule : each_of(run({"show", "schedules", "--format", "json"}).json())) {
    const std::string name = schedule["name"];
    const std::set<std::string> not_in_a_file = {
        "zb-h2", "zb-2p", "zb-v", "1f1b-v", "v-half", "v-min", "dualpipe", "dualpipev", "auto"};
    if (not_in_a_file.contains(name)) continue;
    const std::string chunks = name == "interleaved" || name == "looped-bfs" ? "2" : "1";
    // Megatron overlaps transfers beside any order of its own choice, but not beside 1F1B's.
    std::vector<std::string> more{
        "--set", "layout.overlap.pp=false", "--format", "json", "--vpp", chunks, "--schedule"};
    std::vector<std::string> named = predict_words(more), from_file = predict_words(more);
    named.push_back(name);
    from_file.push_back("file:" + file);
    std::vector<std::string> export_words = predict_words({"--vpp", chunks, "--schedule", name});
    export_words.front() = "export";
    export_words.insert(export_words.end(), {"--to", "schedule", "-o", file});
    ASSERT_EQ(run(export_words).code, 0) << run(export_words).error;
    const Outcome expected = run(named), got = run(from_file);
    ASSERT_NE(got.code, 2) << got.error;
    std::string text = got.out;
    const std::string written = "file:" + file;
    for (auto at = text.find(written); at != std::string::npos; at = text.find(written)) {
      text.replace(at, written.size(), name);
    }
    EXPECT_EQ(text, expected.out) << name;
  }
}

// A key of the table is a key of the scenario: each with a default is in the resolved one.
TEST(ShowCommand, ListsTheKeysThatPredictResolves) {
  const json resolved = run(predict_words({"--format", "json"})).json()["resolved"];
  const json keys = run({"show", "keys", "--format", "json"}).json();
  EXPECT_GE(keys.size(), 45u);
  std::size_t shown = 0;
  for (const json& key : keys) {
    std::string pointer = "/" + key["key"].get<std::string>();
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    shown += resolved.contains(json::json_pointer(pointer)) ? 1 : 0;
  }
  EXPECT_GE(shown, 38u);
}

TEST(ShowCommand, HasTheSameRowsInEveryForm) {
  const auto rows = run({"show", "gpus", "--format", "json"}).json().size();
  const Outcome csv = run({"show", "gpus", "--format", "csv"});
  const Outcome markdown = run({"show", "gpus", "--format", "md"});
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.out.begin(), csv.out.end(), '\n')), rows + 1);
  EXPECT_EQ(static_cast<std::size_t>(std::count(markdown.out.begin(), markdown.out.end(), '\n')),
            rows + 2);
}

TEST(TopologyCommand, ShowsTheGraphInEveryForm) {
  EXPECT_NE(run({"topology", "show", "dgx-h100x2"}).out.find("16 GPUs"), std::string::npos);
  const json graph = run({"topology", "show", "dgx-h100x2", "--format", "json"}).json();
  std::size_t gpus = 0, links = 0;
  for (const json& vertex : graph["vertices"]) gpus += vertex["kind"] == "gpu" ? 1 : 0;
  for (const json& link : graph["links"]) links += link.contains("between") ? 2 : 1;
  EXPECT_EQ(gpus, 16u);
  const Outcome dot = run({"topology", "show", "dgx-h100x2", "--format", "dot"});
  EXPECT_EQ(dot.out.rfind("digraph", 0), 0u);
  // A box for each node, and a line for each cable.
  const auto count = [&](const std::string& part) {
    std::size_t out = 0;
    for (auto at = dot.out.find(part); at != std::string::npos; at = dot.out.find(part, at + 1)) {
      ++out;
    }
    return out;
  };
  EXPECT_EQ(count("subgraph cluster_node"), 2u);
  EXPECT_EQ(count(" -> "), links / 2);
  EXPECT_EQ(count("dir=none"), links / 2);
  EXPECT_EQ(count("label=\"gpu7\""), 2u);
  std::istringstream in(run({"topology", "show", "dgx-h100x2", "--format", "graphml"}).out);
  boost::property_tree::ptree xml;
  ASSERT_NO_THROW(boost::property_tree::read_xml(in, xml));
  EXPECT_EQ(xml.get_child("graphml.graph").count("node"), graph["vertices"].size());
  EXPECT_EQ(xml.get_child("graphml.graph").count("edge"), links);
}

TEST(TopologyCommand, ChecksShippedClusters) {
  const Outcome sound = run({"topology", "check", "dgx-a100-80g", "--nodes", "4"});
  EXPECT_EQ(sound.code, 0) << sound.error;
  EXPECT_NE(sound.out.find("sound (32 GPUs"), std::string::npos) << sound.out;
  expect_refused(run({"topology", "check", "dgx-a1000"}));
  expect_refused(run({"topology", "show", "dgx-a100-80g", "--nodes", "0"}));
}

TEST(DoctorCommand, SaysWhatThisMachineHas) {
  const Outcome text = run({"doctor"});
  EXPECT_EQ(text.code, 0) << text.error;
  const json out = run({"doctor", "--format", "json"}).json();
  for (const char* key : {"stepcast", "cores", "stepcast-rank", "models", "clusters", "suites"}) {
    EXPECT_TRUE(out.contains(key)) << key;
  }
}

TEST(DoctorCommand, SaysWhatMeasuringGpusNeedsAndWhatToDoAboutIt) {
  const json out = run({"doctor", "--format", "json"}).json();
  for (const char* key : {"stepcast-gpu", "CUDA driver", "cuBLASLt", "cuDNN", "NCCL", "NVML"}) {
    ASSERT_TRUE(out.contains(key)) << key;
    // Everything that is missing and needed says what to do; what is there says nothing.
    const std::string found = out[key];
    const bool is_there = found != "missing" && found.find("cannot be loaded") != 0 &&
                          found.find("not ") != 0 && found.find("without") == std::string::npos;
    EXPECT_EQ(out["to_do"].contains(key), !is_there && std::string(key) != "cuDNN")
        << key << ": " << found;
  }
}

TEST(DoctorCommand, MissesTheProgramThatRunsRanks) {
  ::setenv("STEPCAST_RANK_PROGRAM", "/nowhere/stepcast-rank", 1);
  const json out = run({"doctor", "--format", "json"}).json();
  ::unsetenv("STEPCAST_RANK_PROGRAM");
  EXPECT_EQ(out["stepcast-rank"], "not beside stepcast");
  EXPECT_NE(out["to_do"]["stepcast-rank"].get<std::string>().find("build"), std::string::npos);
}

TEST(DoctorCommand, MissesTheProgramThatMeasuresGpus) {
  ::setenv("STEPCAST_GPU_PROGRAM", "/nowhere/stepcast-gpu", 1);
  const json out = run({"doctor", "--format", "json"}).json();
  ::unsetenv("STEPCAST_GPU_PROGRAM");
  EXPECT_EQ(out["stepcast-gpu"].get<std::string>().find("not "), 0U);
  EXPECT_NE(out["to_do"]["stepcast-gpu"].get<std::string>().find("build"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::testing
