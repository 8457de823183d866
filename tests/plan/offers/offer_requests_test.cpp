// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/offer_requests.h"

#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "places.h"

namespace stepcast {
namespace {

const std::string kTopologies = source_folder() + "/topologies";

Result<std::vector<OfferRequest>> requests(const OfferQuestion& question,
                                           const SortedJson& scenario = SortedJson::object()) {
  return offer_requests(scenario, question, kTopologies);
}

std::vector<std::pair<std::string, std::int64_t>> sizes(
    const Result<std::vector<OfferRequest>>& requests) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  if (!requests) {
    ADD_FAILURE() << to_string(requests.error());
    return out;
  }
  for (const OfferRequest& request : *requests) {
    const SortedJson cluster = SortedJson::parse(request.cluster);
    out.emplace_back(request.label, cluster.value("gpus", cluster.value("nodes", 0) * 8));
  }
  return out;
}

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

TEST(OfferRequests, AreEachClusterInEachCount) {
  EXPECT_EQ(sizes(requests({{"dgx-h100", "dgx-h200"}, "--clusters", {8, 16}, {}})),
            (Sizes{{"dgx-h100", 8}, {"dgx-h100", 16}, {"dgx-h200", 8}, {"dgx-h200", 16}}));
}

TEST(OfferRequests, AClusterThatStatesASizeHasThatOne) {
  EXPECT_EQ(sizes(requests({{"dgx-h100x4", "dgx-h200"}, "--clusters", {64}, {}})),
            (Sizes{{"dgx-h100", 32}, {"dgx-h200", 64}}));
  const auto unused = requests({{"dgx-h100x4"}, "--clusters", {64}, {}});
  ASSERT_FALSE(unused);
  EXPECT_EQ(unused.error().front().path, "--gpus");
}

TEST(OfferRequests, CountsVaryTheScenariosClusterWhateverItsSize) {
  const SortedJson scenario{{"cluster", {{"base", "dgx-h100"}, {"nodes", 4}, {"nic", "200 Gb/s"}}}};
  const auto made = requests({{}, "", {8, 24}, {}}, scenario);
  EXPECT_EQ(sizes(made), (Sizes{{"dgx-h100 nic=200 Gb/s", 8}, {"dgx-h100 nic=200 Gb/s", 24}}));
  EXPECT_FALSE(SortedJson::parse(made->front().cluster).contains("nodes"));
}

TEST(OfferRequests, WithoutCountsTheScenariosClusterGivesTheSize) {
  const SortedJson scenario{{"cluster", "dgx-a100-80gx4"}};
  EXPECT_EQ(sizes(requests({{"dgx-h100", "dgx-h200x2"}, "--clusters", {}, {}}, scenario)),
            (Sizes{{"dgx-h100", 32}, {"dgx-h200", 16}}));
}

TEST(OfferRequests, NoneIsAboveTheMostThatIsAllowed) {
  EXPECT_EQ(sizes(requests({{"dgx-h100"}, "--clusters", {8, 16, 32}, 20})),
            (Sizes{{"dgx-h100", 8}, {"dgx-h100", 16}}));
  EXPECT_EQ(sizes(requests({{"dgx-h100x4"}, "--clusters", {}, 20})), (Sizes{{"dgx-h100", 20}}));
  const auto none = requests({{"dgx-h100"}, "--clusters", {32}, 20});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().front().path, "--gpus");
}

TEST(OfferRequests, HoldEachOfferOnce) {
  EXPECT_EQ(sizes(requests({{"dgx-h100", "dgx-h100"}, "--clusters", {8}, {}})),
            (Sizes{{"dgx-h100", 8}}));
}

TEST(OfferRequests, NeedACluster) { EXPECT_FALSE(requests({{}, "", {8}, {}})); }

}  // namespace
}  // namespace stepcast
