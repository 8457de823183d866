// SPDX-License-Identifier: Apache-2.0
// The public classes say what the program says: for one scenario both give the same bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "places.h"
#include "stepcast/stepcast.h"

namespace stepcast::api {
namespace {

using testing::Folder;
using testing::run;
using testing::write_file;

constexpr const char* kScenario = R"({
  "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
  "training": {"global_batch": 64, "sequence_length": 4096},
  "run": {"tokens": 1000000000000}, "layout": {"tp": 2, "pp": 2}})";

constexpr const char* kOpen = R"({
  "stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
  "training": {"global_batch": 64, "sequence_length": 4096}})";

Data shipped() {
  auto data = Data::open(source_folder());
  EXPECT_TRUE(data.has_value());
  return *data;
}

Scenario parsed(const char* text) {
  auto scenario = Scenario::parse(shipped(), text);
  EXPECT_TRUE(scenario.has_value());
  return *scenario;
}

class BesideTheProgram : public ::testing::Test {
 protected:
  std::string file(const char* text, const std::string& name = "scenario.json") {
    write_file(folder_ / name, text);
    return folder_ / name;
  }

 private:
  Folder folder_;
};

TEST_F(BesideTheProgram, AForecastIsTheSameInEveryFormat) {
  PredictOptions options;
  options.timeline = true;
  const auto prediction = predict(parsed(kScenario), options);
  ASSERT_TRUE(prediction) << to_string(prediction.error());
  const std::string path = file(kScenario);
  EXPECT_EQ(prediction->json(), run({"predict", path, "--format", "json"}).out);
  EXPECT_EQ(prediction->csv(), run({"predict", path, "--format", "csv"}).out);
  EXPECT_EQ(prediction->markdown(), run({"predict", path, "--format", "md"}).out);
  EXPECT_EQ(prediction->text(), run({"predict", path}).out);
  const Folder out;
  ASSERT_EQ(run({"predict", path, "--html", out / "page", "--trace", out / "trace",
                 "--memory-timeline", out / "memory.json"})
                .code,
            0);
  EXPECT_EQ(prediction->html().value(), testing::read_file(out / "page"));
  EXPECT_EQ(prediction->trace().value(), testing::read_file(out / "trace"));
  EXPECT_EQ(prediction->memory_timeline().value(), testing::read_file(out / "memory.json"));
}

TEST_F(BesideTheProgram, PicturesAreThoseOfThePage) {
  PredictOptions options;
  options.pictures = true;
  const auto drawn = predict(parsed(kScenario), options);
  ASSERT_TRUE(drawn) << to_string(drawn.error());
  options = {};
  options.timeline = true;
  const auto whole = predict(parsed(kScenario), options);
  ASSERT_TRUE(whole) << to_string(whole.error());
  const std::string pictures = drawn->pictures().value();
  EXPECT_EQ(pictures, whole->pictures().value());
  const std::string page = whole->html().value();
  for (const std::string id : {"time", "pipeline", "memory"}) {
    const std::size_t begin = pictures.find("<section id=\"" + id);
    ASSERT_NE(begin, std::string::npos) << id;
    const std::size_t end = pictures.find("</section>", begin);
    EXPECT_NE(page.find(pictures.substr(begin, end - begin)), std::string::npos) << id;
  }
  EXPECT_EQ(drawn->json(), whole->json());
  EXPECT_EQ(drawn->html().error().front().path, "timeline");
}

TEST_F(BesideTheProgram, OptionsAreTheFlags) {
  PredictOptions options;
  options.what_if = {"scale_up=-50%"};
  options.explain = true;
  options.causal_flops = true;
  options.contention = false;
  options.unfolded = true;
  options.seed = 7;
  const auto prediction = predict(parsed(kScenario), options);
  ASSERT_TRUE(prediction) << to_string(prediction.error());
  const auto program =
      run({"predict", file(kScenario), "--what-if", "scale_up=-50%", "--explain", "--flops",
           "causal", "--no-contention", "--unfolded", "--seed", "7", "--format", "json"});
  ASSERT_EQ(program.code, 0) << program.error;
  EXPECT_EQ(prediction->json(), program.out);
}

TEST_F(BesideTheProgram, AccessorsAreTheFiguresOfTheJson) {
  const auto prediction = predict(parsed(kScenario));
  ASSERT_TRUE(prediction) << to_string(prediction.error());
  const auto json = nlohmann::json::parse(prediction->json());
  EXPECT_EQ(prediction->fits(), json.at("fits").get<bool>());
  EXPECT_DOUBLE_EQ(prediction->step_time().value(), json.at("step_time_s").get<double>());
  EXPECT_DOUBLE_EQ(prediction->mfu(), json.at("mfu").get<double>());
  EXPECT_DOUBLE_EQ(prediction->tokens_per_s(), json.at("tokens_per_s").get<double>());
  EXPECT_DOUBLE_EQ(prediction->bubble_fraction(), json.at("bubble_fraction").get<double>());
  EXPECT_LT(prediction->step_time_low(), prediction->step_time());
  EXPECT_GT(prediction->step_time_high(), prediction->step_time());
  EXPECT_GT(prediction->peak_memory(), 0);
}

TEST_F(BesideTheProgram, APlanHasTheSamePlaces) {
  PlanOptions options;
  options.replays = 32;
  options.top = 5;
  options.front = 6;
  const auto found = plan(parsed(kOpen), options);
  ASSERT_TRUE(found) << to_string(found.error());
  const auto program = run(
      {"plan", file(kOpen), "--replays", "32", "--top", "5", "--front", "6", "--format", "json"});
  ASSERT_EQ(program.code, 0) << program.error;
  EXPECT_EQ(nlohmann::json::parse(found->json()).at("plans"), program.json().at("plans"));
  EXPECT_EQ(nlohmann::json::parse(found->json()).at("pareto"), program.json().at("pareto"));
  ASSERT_GE(found->places(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const auto prediction = predict(found->scenario(i));
    ASSERT_TRUE(prediction) << to_string(prediction.error());
    EXPECT_EQ(prediction->step_time(), found->step_time(i));
    EXPECT_FALSE(found->layout(i).empty());
  }
  EXPECT_TRUE(found->html().has_value());
}

TEST_F(BesideTheProgram, APlanThatIsStoppedAnswersAndTellsItsProgress) {
  PlanOptions options;
  std::atomic<int> asked = 0;
  int told = 0;
  options.prove = true;
  options.stop = [&] { return ++asked > 100; };
  options.progress = [&](const PlanProgress& state) {
    ++told;
    EXPECT_GE(state.elapsed.value(), 0);
  };
  const auto found = plan(parsed(kOpen), options);
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_FALSE(found->proven());
  EXPECT_GT(found->places(), 0u);
  EXPECT_GT(told, 0);
}

TEST_F(BesideTheProgram, TheBestSoFarIsAScenarioOfItsTime) {
  PlanOptions options;
  std::string scenario;
  Seconds time;
  options.progress = [&](const PlanProgress& state) {
    EXPECT_EQ(state.best_scenario.empty(), state.best.value() == 0);
    if (state.best_scenario.empty()) return;
    scenario = state.best_scenario;
    time = state.best;
  };
  ASSERT_TRUE(plan(parsed(kOpen), options));
  ASSERT_FALSE(scenario.empty());
  const auto again = predict(parsed(scenario.c_str()));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->step_time(), time);
}

TEST_F(BesideTheProgram, AComparisonIsThatOfTheFiles) {
  const std::string one = file(kScenario, "one.json");
  const auto sharded = parsed(kScenario).with("layout.zero", "1");
  ASSERT_TRUE(sharded);
  const std::string two = file(sharded->json().c_str(), "two.json");
  const auto comparison =
      compare({parsed(kScenario).named(one), sharded->named(two)}, /*threads=*/2);
  ASSERT_TRUE(comparison) << to_string(comparison.error());
  EXPECT_EQ(comparison->json(), run({"compare", one, two, "--format", "json"}).out);
  EXPECT_EQ(comparison->markdown(), run({"compare", one, two, "--format", "md"}).out);
  EXPECT_EQ(comparison->csv(), run({"compare", one, two, "--format", "csv"}).out);
  EXPECT_EQ(comparison->text(), run({"compare", one, two}).out);
}

TEST_F(BesideTheProgram, ACheckIsTheGate) {
  const auto suite = Suite::load(shipped(), "zero-bubble-a100");
  ASSERT_TRUE(suite) << to_string(suite.error());
  const auto open = check({*suite}, {"step_time.mean_abs_error=0.50"}, /*threads=*/2);
  ASSERT_TRUE(open) << to_string(open.error());
  EXPECT_TRUE(open->passed());
  const auto program = run({"check", "zero-bubble-a100", "--tolerance",
                            "step_time.mean_abs_error=0.50", "--format", "json"});
  EXPECT_EQ(open->json(), program.out);
  const auto closed = check({*suite}, {"step_time.mean_abs_error=0.0001"});
  ASSERT_TRUE(closed);
  EXPECT_FALSE(closed->passed());
  EXPECT_EQ(closed->junit(), run({"check", "zero-bubble-a100", "--tolerance",
                                  "step_time.mean_abs_error=0.0001", "--format", "junit"})
                                 .out);
}

TEST_F(BesideTheProgram, LaunchFilesAreThoseOfExport) {
  const std::string path = file(kScenario);
  for (const std::string target : {"megatron", "rankmap", "schedule"}) {
    const auto written = launch_files(parsed(kScenario), target);
    ASSERT_TRUE(written) << to_string(written.error());
    ASSERT_EQ(written->files.size(), 1u);
    EXPECT_EQ(written->files.front().text, run({"export", path, "--to", target}).out);
  }
}

TEST_F(BesideTheProgram, CasesOfASuiteAreScenarios) {
  const auto names = shipped_suites(shipped());
  ASSERT_TRUE(names);
  ASSERT_FALSE(names->empty());
  for (const std::string& name : *names) {
    const auto suite = Suite::load(shipped(), name);
    ASSERT_TRUE(suite) << to_string(suite.error());
    ASSERT_GT(suite->cases(), 0u);
    if (suite->is_collective(0)) continue;
    EXPECT_EQ(suite->scenario(0).name(), suite->id(0));
  }
}

TEST_F(BesideTheProgram, ListsAndClustersAreThoseOfTheProgram) {
  for (const std::string topic :
       {"models", "clusters", "gpus", "schedules", "keys", "figures", "documents"}) {
    const auto list = shipped().list(topic);
    ASSERT_TRUE(list) << to_string(list.error());
    EXPECT_EQ(*list, run({"show", topic, "--format", "json"}).out);
  }
  const auto cluster = Cluster::find(shipped(), "dgx-h100x2");
  ASSERT_TRUE(cluster) << to_string(cluster.error());
  EXPECT_EQ(cluster->gpus(), 16);
  EXPECT_EQ(cluster->json(), run({"topology", "show", "dgx-h100x2", "--format", "json"}).out);
  EXPECT_EQ(cluster->dot(), run({"topology", "show", "dgx-h100x2", "--format", "dot"}).out);
}

TEST(PublicErrors, AreListedWithTheirPlaces) {
  EXPECT_EQ(Data::open("/nowhere").error().front().code, ErrorCode::kNotFound);
  EXPECT_EQ(Scenario::parse(shipped(), "{").error().front().code, ErrorCode::kSyntax);
  EXPECT_EQ(shipped().list("recipes").error().front().code, ErrorCode::kNotFound);
  EXPECT_EQ(Suite::load(shipped(), "zero-buble-a100").error().front().hint,
            "did you mean 'zero-bubble-a100'?");
  EXPECT_EQ(Cluster::find(shipped(), "dgx-h101").error().front().code, ErrorCode::kNotFound);
  const auto wrong = parsed(kScenario).with("layout.tp", "3");
  ASSERT_TRUE(wrong);
  ASSERT_FALSE(wrong->errors().empty());
  EXPECT_EQ(wrong->errors().front().path, "layout.tp");
  EXPECT_EQ(to_string(predict(*wrong).error()), to_string(wrong->errors()));
  EXPECT_EQ(to_string(wrong->resolved().error()), to_string(wrong->errors()));
}

TEST(PublicErrors, SayWhatACallLacks) {
  const auto prediction = predict(parsed(kScenario));
  ASSERT_TRUE(prediction);
  EXPECT_EQ(prediction->html().error().front().path, "timeline");
  EXPECT_EQ(prediction->trace().error().front().path, "timeline");
  EXPECT_EQ(prediction->memory_timeline().error().front().path, "timeline");
  EXPECT_EQ(prediction->pictures().error().front().path, "pictures");
  PlanOptions options;
  options.objective = "fame";
  EXPECT_EQ(plan(parsed(kOpen), options).error().front().path, "objective");
  options = {};
  options.top = 0;
  options.front = -1;
  options.risk = 0.2;
  const auto out_of_range = plan(parsed(kOpen), options);
  ASSERT_EQ(out_of_range.error().size(), 3u) << to_string(out_of_range.error());
  EXPECT_EQ(to_string(out_of_range.error()[0]), "top: 0 is out of range (1 to 1000)");
  EXPECT_EQ(out_of_range.error()[1].path, "front");
  EXPECT_EQ(out_of_range.error()[2].path, "risk");
  EXPECT_EQ(compare({parsed(kScenario), parsed(kOpen)}).error().front().code, ErrorCode::kIllegal);
  EXPECT_EQ(compare({}).error().front().code, ErrorCode::kMissingKey);
  EXPECT_EQ(launch_files(parsed(kScenario), "bash").error().front().path, "target");
  EXPECT_EQ(check({}).error().front().code, ErrorCode::kMissingKey);
}

}  // namespace
}  // namespace stepcast::api
