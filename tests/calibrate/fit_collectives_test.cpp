// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_collectives.h"
#include "places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/json.h"

namespace stepcast {
namespace {

FittedCollectives fitted_from_published() {
  const auto tables =
      published_collectives(source_folder() + "/calibrate/published");
  EXPECT_TRUE(tables) << to_string(tables.error());
  std::vector<JsonDocument*> documents;
  for (const auto& document : *tables) documents.push_back(document.get());
  const Result<FittedCollectives> fitted = fit_collective_curves(documents);
  EXPECT_TRUE(fitted) << to_string(fitted.error());
  return *fitted;
}

TEST(CollectiveFit, PredictsSizesBetweenOthers) {
  int curves = 0;
  for (const FittedCollectives::Curve& curve : fitted_from_published().curves) {
    if (curve.measured.group.domains > 1 || curve.samples.size() < 10) continue;
    const FitError error = held_out_sizes(curve.measured, curve.samples, Bytes(16.0 * 1024 * 1024));
    EXPECT_LT(error.median, 0.08) << curve.measured.id;
    ++curves;
  }
  EXPECT_GT(curves, 10);
}

// RCCL's curves, inside a node and across two: each size from the others.
TEST(CollectiveFit, PredictsSizesOfRccl) {
  constexpr Bytes kLarge(16.0 * 1024 * 1024);
  int curves = 0;
  for (const FittedCollectives::Curve& curve : fitted_from_published().curves) {
    if (!curve.measured.id.ends_with("-rccl")) continue;
    EXPECT_LT(held_out_sizes(curve.measured, curve.samples, kLarge).median, 0.03)
        << curve.measured.id;
    EXPECT_LT(held_out_sizes(curve.measured, curve.samples, Bytes()).median, 0.08)
        << curve.measured.id;
    ++curves;
  }
  EXPECT_EQ(curves, 4);
}

TEST(CollectiveFit, IsWhatShips) {
  const FittedCollectives fitted = fitted_from_published();
  std::ifstream file(source_folder() + "/calibrate/profiles/collectives.json");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(fitted.text, text) << "run stepcast-fit and commit what it writes";
}

constexpr const char* kTable = R"({"stepcast_published_collectives": 1, "tables": [{"id": "t",
  "source": "s", "architecture": "ampere", "scale_up": "nvswitch",
  "scale_up_bandwidth": "300 GB/s", "collective": "all_gather", "ranks": 8, "domains": 1,
  "launch": "LAUNCH", "rows_bytes_us": ROWS}]})";

Result<std::string> fit_of(const std::string& launch, const std::string& rows) {
  std::string text = kTable;
  text.replace(text.find("LAUNCH"), 6, launch);
  text.replace(text.find("ROWS"), 4, rows);
  const auto document = JsonDocument::parse(text, "tables.json");
  EXPECT_TRUE(document);
  const auto fitted = fit_collective_curves({document->get()});
  if (!fitted) return failure(fitted.error());
  return fitted->text;
}

// 8 A100: the nominal all-gather of 8 KiB takes 6.6 + 7 x 0.6 us and 8192 B at 87.7 GB/s x 8/7,
// 10.88 us in all; the loop's 40 us hold 29.12 us of launch.
TEST(CollectiveFit, TakesTheLaunchOutOfSerialLoops) {
  const Result<std::string> fitted = fit_of("serial", "[[8192, 40], [134217728, 700]]");
  ASSERT_TRUE(fitted);
  EXPECT_NE(fitted->find("[8192, 10.88"), std::string::npos) << *fitted;
  EXPECT_NE(fitted->find("[134217728, 670.8"), std::string::npos) << *fitted;
}

TEST(CollectiveFit, DropsWhatASharedHostDecided) {
  const std::string rows =
      "[[1024, 40], [2048, 41], [4096, 40], [1048576, 45], [16777216, 150], [33554432, 250],"
      " [67108864, 400], [134217728, 700]]";
  const Result<std::string> fitted = fit_of("shared", rows);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->find("[1048576,"), std::string::npos);
  EXPECT_NE(fitted->find("[[16777216, 150]"), std::string::npos) << *fitted;
  EXPECT_NE(fit_of("own", rows)->find("[1048576, 45]"), std::string::npos);
}

TEST(CollectiveFit, NamesTheKeyOfABadTable) {
  const Result<std::string> fitted = fit_of("sideways", "[[8192, 40], [4096, 50]]");
  ASSERT_FALSE(fitted);
  const std::string text = to_string(fitted.error());
  EXPECT_NE(text.find("launch"), std::string::npos) << text;
  EXPECT_NE(text.find("rows_bytes_us"), std::string::npos) << text;
}

}  // namespace
}  // namespace stepcast
