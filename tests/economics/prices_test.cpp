// SPDX-License-Identifier: Apache-2.0
#include "economics/prices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cluster/cluster.h"
#include "core/temporary_folder.h"
#include "places.h"

namespace stepcast {
namespace {

const std::string kRoot = source_folder();

TEST(Prices, WhatShipsIsOfClustersAndAcceleratorsThatShip) {
  const auto prices = load_prices({kRoot + "/prices"});
  ASSERT_TRUE(prices.has_value()) << to_string(prices.error());
  EXPECT_GT(prices->size(), 10U);
  for (const Price& price : *prices) {
    const std::string file =
        price.cluster.empty() ? "/accelerators/" + price.accelerator : "/clusters/" + price.cluster;
    EXPECT_TRUE(std::filesystem::exists(kRoot + "/topologies" + file + ".json")) << file;
    EXPECT_GT(price.dollars_per_gpu_hour, 0.1) << file;
    EXPECT_LT(price.dollars_per_gpu_hour, 20) << file;
  }
}

TEST(Prices, AClustersOwnPriceGoesBeforeItsAccelerators) {
  const PriceList prices{{.accelerator = "h100", .dollars_per_gpu_hour = 2},
                         {.cluster = "cloud", .dollars_per_gpu_hour = 7}};
  ClusterSpec spec;
  spec.name = "cloud";
  spec.accelerator.name = "h100";
  EXPECT_EQ(find_price(prices, spec)->dollars_per_gpu_hour, 7);
  spec.name = "other";
  EXPECT_EQ(find_price(prices, spec)->dollars_per_gpu_hour, 2);
  spec.accelerator.name = "a100";
  EXPECT_EQ(find_price(prices, spec), nullptr);
}

// The market's price and that of one provider are no price of another provider. The user's own is.
TEST(Prices, AProvidersClusterHasItsOwnPriceOrNone) {
  PriceList prices{{.accelerator = "h100", .dollars_per_gpu_hour = 2},
                   {.cluster = "azure-a", .dollars_per_gpu_hour = 7}};
  ClusterSpec spec;
  spec.accelerator.name = "h100";
  spec.provider = "Azure";
  spec.name = "azure-a";
  EXPECT_EQ(find_price(prices, spec)->dollars_per_gpu_hour, 7);
  spec.name = "azure-b";
  EXPECT_EQ(find_price(prices, spec), nullptr);
  EXPECT_EQ(why_no_price(spec), "no price of Azure for h100 is known here");
  prices.front().is_own = true;
  EXPECT_EQ(find_price(prices, spec)->dollars_per_gpu_hour, 2);
}

TEST(Prices, AreOldWhereTheyAreOverAYearBeforeTheDay) {
  for (const char* old : {"2024", "2024-12", "2025-10", "2025-11-27"}) {
    EXPECT_TRUE(is_over_a_year(old, "2026-11-28")) << old;
  }
  for (const char* recent : {"2025", "2025-11", "2025-11-28", "2026-05", "2027", "undated"}) {
    EXPECT_FALSE(is_over_a_year(recent, "2026-11-28")) << recent;
  }
}

// Lines as SkyPilot's catalogue of AWS has them.
TEST(Prices, ACatalogueOfSkyPilotIsReadAsItIs) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "vms.csv";
  const auto load = [&](const std::string& rows) {
    std::ofstream(file) << "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,"
                           "Price,SpotPrice,Region,AvailabilityZone\n"
                        << rows;
    return load_prices({kRoot + "/prices", file});
  };
  const auto read = load(
      "p5.48xlarge,192.0,2048.0,H100,8.0,\"{'Gpus': [{'Name': 'H100', 'Count': 8}]}\",55.04,24.0,"
      "us-east-1,us-east-1a\n"
      "p5.48xlarge,192.0,2048.0,H100,8.0,\"{'Gpus': [{'Name': 'H100', 'Count': 8}]}\",48.0,,"
      "us-east-2,us-east-2a\n"
      "p5.4xlarge,16.0,256.0,H100,1.0,,6.88,2.0,us-east-1,us-east-1a\n"
      "m5.large,2.0,8.0,,,,0.096,0.03,us-east-1,us-east-1a\n");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  ClusterSpec spec;
  spec.name = "aws-p5";
  const Price* price = find_price(*read, spec);
  ASSERT_NE(price, nullptr);
  EXPECT_EQ(price->dollars_per_gpu_hour, 6);
  EXPECT_EQ(price->spot, 3);
  EXPECT_EQ(price->provider, "SkyPilot's catalogue, us-east-2, spot in us-east-1");
  // A price of zero is one that is not known.
  EXPECT_FALSE(load("p5.48xlarge,192.0,2048.0,H100,8.0,,0.0,0.0,us-east-1,a\n").has_value());
  EXPECT_FALSE(load("m5.large,2.0,8.0,,,,0.096,0.03,us-east-1,a\n").has_value());
  EXPECT_FALSE(load("p5.48xlarge,192.0\n").has_value());
  EXPECT_FALSE(load("p5.48xlarge,1,1,H100,8,,much,,us-east-1,a\n").has_value());
}

// Google's catalogue has hosts and accelerators in rows of their own, by zone: 9.6 and 70.4 dollars
// are 10 a GPU, of spot 2.4 and 21.6 are 3. A zone without the accelerator prices nothing.
TEST(Prices, ACatalogueOfGoogleAddsHostsAndAccelerators) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "vms.csv";
  std::ofstream(file)
      << "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,"
         "AvailabilityZone,Price,SpotPrice\n"
         "a3-highgpu-8g,208.0,1872.0,,,,us-central1,us-central1-a,9.6,2.4\n"
         "a3-highgpu-8g,208.0,1872.0,,,,us-east4,us-east4-a,8.0,2.0\n"
         "a3-highgpu-8g,208.0,1872.0,,,,us-west1,us-west1-a,9.0,2.2\n"
         ",,,H100,8,H100,us-central1,us-central1-a,70.4,21.6\n"
         ",,,H100,1,H100,us-east4,us-east4-a,1.0,0.1\n"
         ",,,H100,8,H100,us-west1,us-west1-a,80.0,17.8\n"
         ",,,tpu-v5p-8192,1,tpu-v5p-8192,us-central1,us-central1-a,17203.2,3423.0313\n";
  const auto read = load_prices({kRoot + "/prices", file});
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  ClusterSpec spec;
  spec.name = "gcp-a3-high";
  const Price* price = find_price(*read, spec);
  ASSERT_NE(price, nullptr);
  EXPECT_DOUBLE_EQ(price->dollars_per_gpu_hour, 10);
  EXPECT_DOUBLE_EQ(*price->spot, 2.5);
  EXPECT_EQ(price->provider, "SkyPilot's catalogue, us-central1, spot in us-west1");
}

TEST(Prices, ClustersOfResearchAreNotForRent) {
  const auto prices = load_prices({kRoot + "/prices"});
  const auto clusters = list_clusters(kRoot + "/topologies");
  ASSERT_TRUE(prices.has_value() && clusters.has_value());
  std::size_t research = 0, provided = 0;
  for (const ClusterSpec& spec : *clusters) {
    const Price* price = find_price(*prices, spec);
    research += spec.provider == kNotForRent;
    if (spec.provider == kNotForRent) {
      EXPECT_EQ(price, nullptr) << spec.name;
    }
    if (spec.provider.empty() || price == nullptr) continue;
    ++provided;
    EXPECT_EQ(price->cluster, spec.name);
  }
  EXPECT_GE(research, 8U);
  EXPECT_GE(provided, 10U);
}

TEST(Prices, TheUsersOwnGoBeforeThoseThatShip) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "mine.json") << R"({"stepcast_prices": 1, "prices": [
    {"accelerator": "h100-sxm5-80g", "usd_per_gpu_hour": 1.5, "rented_together": 4,
     "least_time": "24 h", "provider": "ours", "as_of": "2026-06", "source": "contract"}]})";
  const auto prices = load_prices({kRoot + "/prices", folder / "mine.json"});
  ASSERT_TRUE(prices.has_value()) << to_string(prices.error());
  ClusterSpec spec;
  spec.name = "dgx-h100";
  spec.accelerator.name = "h100-sxm5-80g";
  const Price* price = find_price(*prices, spec);
  ASSERT_NE(price, nullptr);
  EXPECT_EQ(price->dollars_per_gpu_hour, 1.5);
  EXPECT_EQ(price->rented_together, 4);
  EXPECT_EQ(price->least.value(), 86400);
  spec.accelerator.name = "h200-sxm5-141g";
  EXPECT_NE(find_price(*prices, spec), nullptr);
}

struct BadPrice {
  const char* entry;
  const char* words;
};

void PrintTo(const BadPrice& bad, std::ostream* out) { *out << bad.words; }

class BadPrices : public ::testing::TestWithParam<BadPrice> {};

TEST_P(BadPrices, AreRefusedWithTheirPlace) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "list.json")
      << R"({"stepcast_prices": 1, "prices": [)" << GetParam().entry << "]}";
  const auto prices =
      load_prices({std::filesystem::path(folder / "list.json").parent_path().string()});
  ASSERT_FALSE(prices.has_value());
  const std::string text = to_string(prices.error());
  EXPECT_NE(text.find(GetParam().words), std::string::npos) << text;
  EXPECT_NE(text.find("prices[0]"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPrices,
    ::testing::Values(
        BadPrice{R"({"usd_per_gpu_hour": 2, "provider": "p", "as_of": "2026", "source": "s"})",
                 "cluster or of an accelerator"},
        BadPrice{R"({"cluster": "c", "provider": "p", "as_of": "2026", "source": "s"})",
                 "usd_per_gpu_hour"},
        BadPrice{R"({"cluster": "c", "usd_per_gpu_hour": 2, "provider": "p", "as_of": "2026"})",
                 "source"},
        BadPrice{R"({"cluster": "c", "usd_per_gpu_hour": 2, "provider": "p", "as_of": "May",
                     "source": "s"})",
                 "'May' is not a date"},
        BadPrice{R"({"cluster": "c", "usd_per_gpu_hour": -2, "provider": "p", "as_of": "2026",
                     "source": "s"})",
                 "out of range"}));

}  // namespace
}  // namespace stepcast
