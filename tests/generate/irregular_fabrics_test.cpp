// SPDX-License-Identifier: Apache-2.0
// Irregular clusters with one part that has failed: each is forecast or refused in words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "generate/draw.h"
#include "layout/data_folders.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "places.h"
#include "predict/prediction.h"

namespace stepcast::generate {
namespace {

constexpr std::uint64_t kSeedOfFabrics = 20261128;
constexpr std::uint64_t kClusters = 1000;

// Nodes of any size, with cables of any rate, on switches that are joined as a tree, a ring, each
// to each as in a dragonfly, or whatever comes. A NIC may have a port in a second network.
class Fabric {
 public:
  explicit Fabric(Draw& draw) : draw_(draw) {}

  SortedJson cluster() {
    const std::int64_t leaves = draw_.number({1, 2, 3, 4}), spines = draw_.number({0, 1, 2});
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) vertex(name("leaf", leaf), "leaf", -1);
    for (std::int64_t spine = 0; spine < spines; ++spine) {
      vertex(name("spine", spine), "spine", -1);
    }
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      for (std::int64_t spine = 0; spine < spines; ++spine) {
        if (draw_.chance(0.8)) cable(name("leaf", leaf), name("spine", spine));
      }
      const bool ring = spines == 0 || draw_.chance(0.2);
      if (leaf > 0 && ring) cable(name("leaf", leaf - 1), name("leaf", leaf));
    }
    if (spines == 0 && leaves > 2) cable(name("leaf", 0), name("leaf", leaves - 1));
    if (spines == 0 && leaves == 4 && draw_.chance(0.5)) {
      cable(name("leaf", 0), name("leaf", 2));
      cable(name("leaf", 1), name("leaf", 3));
    }
    const std::int64_t nodes = draw_.number({1, 2, 2, 3, 4});
    for (std::int64_t node = 0; node < nodes; ++node) add_node(node, leaves);
    SortedJson out = {{"accelerator", draw_.word({"a100-sxm4-80g", "h100-sxm5-80g"})},
                      {"network", draw_.word({"infiniband", "roce", "tcp"})},
                      {"vertices", vertices_},
                      {"links", links_}};
    std::string failed = draw_.of(parts_);
    if (draw_.chance(0.4)) failed += draw_.word({"=10%", "=50%", "=90%"});
    out["fail"] = failed;
    return out;
  }

  std::int64_t gpus() const { return gpus_; }

 private:
  static std::string name(const char* kind, std::int64_t index) {
    return fmt::format("{}{}", kind, index);
  }
  void vertex(const std::string& called, const char* kind, std::int64_t node) {
    SortedJson out = {{"name", called}, {"kind", kind}};
    if (node >= 0) out["node"] = node;
    const bool is_gpu = kind == std::string("gpu");
    if (is_gpu && draw_.chance(0.1)) out["speed"] = 0.7;
    if (is_gpu && draw_.chance(0.1)) out["accelerator"] = "a100-sxm4-40g";
    vertices_.push_back(std::move(out));
    parts_.push_back(called);
  }
  void cable(const std::string& one, const std::string& other) {
    links_.push_back({{"between", {one, other}},
                      {"capacity", draw_.word({"3 GB/s", "12.5 GB/s", "50 GB/s", "300 GB/s"})},
                      {"latency", draw_.word({"0 us", "0.6 us", "3 us"})}});
    parts_.push_back(one + "-" + other);
  }
  void add_node(std::int64_t node, std::int64_t leaves) {
    const std::int64_t gpus = draw_.number({1, 1, 2, 3, 4}), nics = draw_.number({1, 1, 2});
    const auto own = [&](const char* kind, std::int64_t index) {
      return fmt::format("n{}/{}{}", node, kind, index);
    };
    const bool switched = gpus > 1 && draw_.chance(0.6);
    vertex(own("pcie", 0), "pcie", node);
    if (switched) vertex(own("switch", 0), "nvswitch", node);
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
      vertex(own("gpu", gpu), "gpu", node);
      cable(own("gpu", gpu), own("pcie", 0));
      if (switched && draw_.chance(0.9)) cable(own("gpu", gpu), own("switch", 0));
      if (!switched && gpu > 0 && draw_.chance(0.4)) cable(own("gpu", gpu - 1), own("gpu", gpu));
    }
    for (std::int64_t nic = 0; nic < nics; ++nic) {
      vertex(own("nic", nic), "nic", node);
      cable(own("pcie", 0), own("nic", nic));
      const std::int64_t leaf = draw_.below(leaves);
      cable(own("nic", nic), name("leaf", leaf));
      if (leaves > 1 && draw_.chance(0.2)) {
        cable(own("nic", nic), name("leaf", (leaf + 1 + draw_.below(leaves - 1)) % leaves));
      }
    }
    gpus_ += gpus;
  }

  Draw& draw_;
  SortedJson vertices_ = SortedJson::array(), links_ = SortedJson::array();
  std::vector<std::string> parts_;
  std::int64_t gpus_ = 0;
};

// All on one axis, or split over two.
SortedJson layout_of(Draw& draw, std::int64_t gpus) {
  const char* const axes[] = {"dp", "tp", "pp", "cp"};
  const std::int64_t inner = draw.divisor(gpus, 4, [](auto part) { return 12 % part == 0; });
  SortedJson out = {{"dp", gpus / inner}};
  const std::string axis = axes[draw.below(4)];
  if (axis == "dp") {
    out["dp"] = gpus;
  } else {
    out[axis] = inner;
  }
  return out;
}

TEST(IrregularFabrics, WithAFailedPartAreForecastOrRefused) {
  std::uint64_t forecast = 0, refused = 0;
  for (std::uint64_t i = 0; i < kClusters; ++i) {
    Draw draw(SeededRandom(kSeedOfFabrics, i));
    Fabric fabric(draw);
    SortedJson file = {{"stepcast", 1}, {"model", "gpt2"}, {"cluster", fabric.cluster()}};
    // A GPU that has failed is missing in the layout too, so that only some of the rest are legal.
    const std::string failed = file["cluster"]["fail"].get<std::string>();
    const bool gone =
        failed.find("gpu") != std::string::npos && failed.find_first_of("=-") == std::string::npos;
    const std::int64_t gpus = fabric.gpus() - (gone ? 1 : 0);
    if (gpus > 0) file["layout"] = layout_of(draw, gpus);
    file["training"] = {{"global_batch", 24 * std::max<std::int64_t>(1, gpus)}};
    const auto document = JsonDocument::from(file, "drawn.json");
    const std::string root = source_folder();
    const DataFolders folders{root + "/models", root + "/topologies", root + "/calibrate/profiles"};
    const auto scenario = read_scenario(*document, folders);
    if (!scenario) {
      ASSERT_FALSE(scenario.error().empty()) << i;
      for (const Error& error : scenario.error()) EXPECT_FALSE(error.message.empty()) << i;
      ++refused;
      continue;
    }
    const auto prediction = predict(*scenario, folders);
    ASSERT_TRUE(prediction.has_value()) << i << to_string(prediction.error()) << json_text(file);
    EXPECT_GT(prediction->step_time.value(), 0) << i;
    EXPECT_LT(prediction->step_time.value(), 1e6) << i << json_text(file);
    ++forecast;
    if (i % 8 != 0) continue;
    const auto whole = predict(*scenario, folders, {.fold = false});
    ASSERT_TRUE(whole.has_value()) << i;
    EXPECT_NEAR(prediction->step_time.value(), whole->step_time.value(),
                1e-9 * whole->step_time.value())
        << i << json_text(file);
  }
  EXPECT_GT(forecast, kClusters / 2) << refused;
  EXPECT_GT(refused, kClusters / 50);
}

}  // namespace
}  // namespace stepcast::generate
