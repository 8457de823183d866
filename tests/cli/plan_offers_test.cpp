// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "cli/environment.h"
#include "cli/program.h"

namespace stepcast::testing {
namespace {

using nlohmann::json;

// The words of a command with small spaces, and more words behind them.
std::vector<std::string> offer_words(const std::vector<std::string>& more = {}) {
  std::vector<std::string> out{"plan",
                               "--model",
                               "gpt3-1.3b",
                               "--seq",
                               "1024",
                               "--global-batch",
                               "16",
                               "--recompute",
                               "none",
                               "--set",
                               "layout.order=tp-cp-ep-dp-pp"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<std::string> two_clusters(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words =
      offer_words({"--clusters", "dgx-h100,gh200-alps", "--gpus", "4..8"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A value of a key that no search varies is a search of its own, with a bound of its own.
TEST(PlanOffers, VariesKeysThatASearchLeavesAlone) {
  const std::vector<std::string> of_one = {"--cluster", "dgx-h100"};
  std::vector<std::string> words = offer_words(of_one);
  words.insert(words.end(), {"--vary", "precision=bf16,fp8", "--vary", "schedule=1f1b,gpipe",
                             "--prove", "--quiet"});
  const Outcome table = run(words);
  ASSERT_EQ(table.code, 0) << table.error;
  for (const char* precision : {"bf16", "fp8"}) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      EXPECT_TRUE(has(
          table.out, std::string("dgx-h100 with precision=") + precision + " schedule=" + schedule))
          << table.out;
    }
  }
  words.insert(words.end(), {"--format", "json"});
  const json out = run(words).json();
  EXPECT_TRUE(out["proven"]);
  ASSERT_EQ(out["plans"].size(), 4u);
  // Each place is the first of the plan that states its values.
  std::vector<std::string> alone = offer_words(of_one);
  alone.insert(alone.end(), {"--precision", "fp8", "--schedule", "1f1b", "--prove", "--quiet",
                             "--format", "json"});
  const json fp8 = run(alone).json();
  const json& step = fp8["plans"][0]["prediction"]["step_time_s"];
  int same = 0;
  for (const json& plan : out["plans"]) same += plan["prediction"]["step_time_s"] == step ? 1 : 0;
  EXPECT_GE(same, 1) << step;
}

TEST(PlanOffers, SaysWhatIsWrongWithVariedKeys) {
  for (const char* wrong : {"precision", "nothing=1,2", "precision=bf17"}) {
    std::vector<std::string> words = offer_words({"--cluster", "dgx-h100", "--vary", wrong});
    expect_refused(run(words));
  }
}

TEST(PlanOffers, RanksClustersAndSizes) {
  const Outcome result =
      run(two_clusters({"--tokens", "1B", "--prove", "--objective", "cost", "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  const json out = result.json();
  EXPECT_EQ(out["stepcast"], 1);
  EXPECT_EQ(out["objective"], "cost");
  EXPECT_TRUE(out["proven"]);
  ASSERT_EQ(out["plans"].size(), 4u);
  std::set<std::pair<std::string, int>> offers;
  double before = 0;
  int place = 0;
  for (const json& plan : out["plans"]) {
    EXPECT_EQ(plan["place"], ++place);
    offers.emplace(plan["cluster"]["base"], plan["cluster"]["gpus"]);
    EXPECT_TRUE(plan["prediction"]["fits"]);
    EXPECT_FALSE(plan["reason"].get<std::string>().empty());
    EXPECT_LE(plan["bound_s"], plan["prediction"]["step_time_s"]);
    const json& economics = plan["economics"];
    if (plan["cluster"]["base"] == "gh200-alps") {
      EXPECT_GE(place, 3);  // behind all that have a price
      EXPECT_FALSE(economics.contains("cost_usd"));
      EXPECT_TRUE(has(plan["reason"], "no price")) << plan["reason"];
    } else {
      EXPECT_GE(economics["cost_usd"].get<double>(), before);
      before = economics["cost_usd"];
    }
  }
  EXPECT_EQ(offers.size(), 4u);
  EXPECT_EQ(out["answers"]["cheapest"]["place"], 1);
  EXPECT_FALSE(out["answers"].contains("cheapest_within_deadline"));
  ASSERT_FALSE(out["pareto"].empty());
  for (const json& point : out["pareto"]) {
    EXPECT_EQ(point.contains("cost_usd"), point["cluster"] == "dgx-h100");
    EXPECT_TRUE(point.contains("gpus") && point.contains("step_time_s"));
  }
}

// An offer's layout is the first place of a search on that cluster alone.
TEST(PlanOffers, AgreesWithTheSearchOfOneCluster) {
  const json out = run(two_clusters({"--prove", "--format", "json"})).json();
  ASSERT_GE(out["plans"].size(), 2u);
  for (const json& plan : out["plans"]) {
    const json alone = run(offer_words({"--cluster", plan["cluster"]["base"], "--gpus",
                                        std::to_string(plan["cluster"]["gpus"].get<int>()), "--top",
                                        "1", "--format", "json"}))
                           .json()["plans"][0];
    EXPECT_EQ(plan["layout"], alone["layout"]);
    EXPECT_EQ(plan["prediction"], alone["prediction"]);
  }
}

TEST(PlanOffers, PrintsTheSameForAnyNumberOfThreads) {
  for (const char* format : {"table", "json", "csv", "md"}) {
    // With a front every offer is searched to its end, without one those that may win.
    for (const char* points : {"0", "3"}) {
      const auto with = [&](const char* threads) {
        return run(two_clusters(
            {"--tokens", "1B", "--front", points, "--format", format, "--threads", threads}));
      };
      const Outcome one = with("1");
      EXPECT_EQ(one.code, 0) << one.error;
      EXPECT_FALSE(one.out.empty());
      for (const char* threads : {"2", "4"}) EXPECT_EQ(one.out, with(threads).out) << format;
    }
  }
}

TEST(PlanOffers, TableSaysPricesAnswersAndWhatIsRented) {
  const Outcome result =
      run(offer_words({"--clusters", "dgx-h100,aws-p5", "--gpus", "4,8", "--tokens", "1B",
                       "--deadline", "1min", "--budget", "1M", "--front", "2"}));
  ASSERT_EQ(result.code, 0) << result.error;
  for (const char* part :
       {"4 of 8", "misses the deadline",
        "the cheapest: ", "the fastest within $1.00M: ", "no offer meets the deadline",
        "Prices\n  dgx-h100: $2.95 per GPU-hour", "Best in time, memory, GPUs or money"}) {
    EXPECT_TRUE(has(result.out, part)) << part << "\n" << result.out;
  }
}

TEST(PlanOffers, PricesOfSingleClustersReplaceTheListedOnes) {
  const json out =
      run(two_clusters({"--price", "gh200-alps=0.5", "--objective", "cost", "--format", "json"}))
          .json();
  ASSERT_GE(out["plans"].size(), 2u);
  for (const json& plan : out["plans"]) {
    const bool cheap = plan["cluster"]["base"] == "gh200-alps";
    EXPECT_EQ(plan["economics"]["usd_per_gpu_hour"], cheap ? 0.5 : 2.95);
    EXPECT_EQ(plan["place"].get<int>() <= 2, cheap);
  }
  const json all = run(two_clusters({"--price", "2", "--format", "json"})).json();
  ASSERT_GE(all["plans"].size(), 2u);
  for (const json& plan : all["plans"]) EXPECT_EQ(plan["economics"]["usd_per_gpu_hour"], 2.0);
}

TEST(PlanOffers, SizesOfOneClusterMakeOffersToo) {
  const json out = run(offer_words({"--cluster", "dgx-h100x4", "--gpus", "2,4,8", "--max-gpus", "4",
                                    "--top", "1", "--format", "json"}))
                       .json();
  EXPECT_EQ(out["plans"].size(), 1u);
  EXPECT_EQ(out["plans"][0]["cluster"], json({{"base", "dgx-h100"}, {"gpus", 4}}));
  EXPECT_EQ(out["answers"]["cheapest"]["cluster"], "dgx-h100");
}

TEST(PlanOffers, ScenarioNamesClustersObjectiveAndMost) {
  const Folder folder;
  write_file(folder / "s.json", R"({"stepcast":1,"model":"gpt3-1.3b",
      "training":{"global_batch":16,"sequence_length":1024},
      "layout":{"recompute":"none","order":"tp-cp-ep-dp-pp"},
      "plan":{"objective":"goodput","max_gpus":4,
        "clusters":["dgx-h100x1",{"base":"dgx-h100","gpus":2,"nic":"200 Gb/s"}]}})");
  const Outcome result = run({"plan", folder / "s.json", "--format", "json"});
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  EXPECT_EQ(out["objective"], "goodput");
  ASSERT_EQ(out["plans"].size(), 2u);
  EXPECT_EQ(out["plans"][0]["cluster"]["gpus"], 4);
  EXPECT_EQ(out["plans"][1]["cluster"]["nic"], "200 Gb/s");
}

TEST(PlanOffers, SaysWhichOffersHaveNoPlace) {
  const Outcome result =
      run(offer_words({"--clusters", "dgx-h100,pcie-4090-8", "--gpus", "16", "--format", "json"}));
  ASSERT_EQ(result.code, 0) << result.error;
  const json out = result.json();
  ASSERT_EQ(out["rejected"].size(), 1u);
  EXPECT_EQ(out["rejected"][0]["cluster"]["base"], "pcie-4090-8");
  EXPECT_TRUE(has(out["rejected"][0]["reason"], "refused: ")) << out["rejected"];
}

TEST(PlanOffers, EndsWithThreeWhenNothingFitsAnywhere) {
  const Outcome result =
      run({"plan", "--model", "gpt3-175b", "--clusters", "dgx-a100-40g", "--gpus", "8",
           "--global-batch", "8", "--recompute", "full", "--seq", "2048"});
  EXPECT_EQ(result.code, 3) << result.error;
  EXPECT_TRUE(has(result.out, "nothing fits: the least is")) << result.out;
}

TEST(PlanOffers, TimeLimitIsOfAllSearches) {
  const Outcome result =
      run({"plan", "--model", "gpt3-175b", "--clusters", "dgx-h100,dgx-h200", "--gpus", "256,512",
           "--global-batch", "512", "--seq", "2048", "--time-limit", "0.001", "--format", "json"});
  const json out = result.json();
  EXPECT_FALSE(out["proven"]);
  EXPECT_EQ(out["plans"].size() + out["rejected"].size(), 4u);
  EXPECT_FALSE(out["rejected"].empty());
}

TEST(PlanOffers, RefusesWhatItCannotAnswer) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    const Outcome result = run(offer_words(more));
    expect_refused(result);
    EXPECT_TRUE(has(result.error, part)) << result.error;
  };
  refused({"--clusters", "dgx-h1000", "--gpus", "8"}, "--clusters (dgx-h1000)");
  refused({"--clusters", "dgx-h100", "--gpus", "8..many"}, "--gpus");
  refused({"--clusters", "dgx-h100", "--gpus", "16..8"}, "ends before it begins");
  refused({"--gpus", "8,16"}, "no cluster");
  refused({"--clusters", "dgx-h100", "--cluster", "dgx-h200", "--gpus", "8"}, "--cluster");
  refused({"--clusters", "dgx-h100", "--nodes", "2"}, "--nodes");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--why-not", "tp=1"}, "--why-not");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--set", "cluster.nic=200 Gb/s"}, "--set");
  refused({"--clusters", "dgx-h100x2", "--gpus", "8"}, "--gpus");
  refused({"--clusters", "dgx-h100", "--gpus", "16", "--max-gpus", "8"}, "--max-gpus");
  refused({"--clusters", "gh200-alps", "--gpus", "8", "--objective", "cost"}, "gh200-alps");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--budget", "1M"}, "--tokens");
  refused({"--clusters", "dgx-h100,dgx-h200", "--gpus", "8", "--fix", "tp=3"}, "layout.tp");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--objective", "beauty"}, "--objective");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--price", "dgx-h10=2"}, "did you mean");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--price", "dgx-h100=much"}, "--price");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--price", "dgx-h100=2,dgx-h100=3"},
          "dgx-h100 has two prices");
  refused({"--clusters", "mi300x", "--gpus", "8", "--price", "mi300x=2,azure-nd-mi300x-v5=3",
           "--quiet"},
          "two prices, under two names");
  refused({"--clusters", "dgx-h100", "--gpus", "8", "--price", "dgx-h100=2", "--set",
           "run.price_per_gpu_hour=3"},
          "run.price_per_gpu_hour");
}

// A GPU's name stands for a cluster in --clusters, and in --price.
TEST(PlanOffers, PricesHaveEveryNameThatClustersHave) {
  const auto found = run({"plan", "--model", "llama-3.1-8b", "--global-batch", "64", "--seq",
                          "4096", "--clusters", "mi300x,dgx-h100", "--gpus", "8", "--tokens", "1B",
                          "--price", "mi300x=1.99", "--quiet"});
  ASSERT_EQ(found.code, 0) << found.error;
  EXPECT_TRUE(has(found.out, "mi300x: $1.99 per GPU-hour: --price")) << found.out;
}

TEST(PlanOffers, OldPricesAreNamedAndSpotPricesAreThatOrNone) {
  const std::vector<std::string> words = predict_words({"--tokens", "1B"});
  {
    const Environment later("SOURCE_DATE_EPOCH", "1893456000");  // 2030-01-01
    const auto old = run(words);
    EXPECT_TRUE(has(old.error, "more than a year ago")) << old.error;
  }
  const Environment then("SOURCE_DATE_EPOCH", "1779278400");  // 2026-05-20
  EXPECT_FALSE(has(run(words).error, "more than a year ago"));
  const auto spot = run(predict_words({"--tokens", "1B", "--spot"}));
  EXPECT_TRUE(has(spot.out, "no spot price of h100-sxm5-80g is listed")) << spot.out;
}

}  // namespace
}  // namespace stepcast::testing
