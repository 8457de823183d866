// SPDX-License-Identifier: Apache-2.0
#include "cost/collective_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/statistics.h"
#include "cost/collective_fixture.h"
#include "places.h"

namespace stepcast {
namespace {

using testing::a100;
using testing::h100;
using testing::shipped_profiles;

std::string published_file() { return source_folder() + "/calibrate/published/collectives.json"; }

struct Measured {
  MeasuredGroup group;
  std::vector<CollectiveSample> samples;
};

// Tables of the published file (or curves of the profile) by id.
std::map<std::string, Measured> read_all(const std::string& file, const char* list,
                                         const char* rows) {
  std::map<std::string, Measured> result;
  const auto document = JsonDocument::load(file);
  EXPECT_TRUE(document) << file;
  ObjectReader root((*document)->root());
  const std::vector<JsonValue> values = root.required(list)->items();
  for (const JsonValue& value : values) {
    ObjectReader reader(value);
    Measured measured{read_measured_group(reader), {}};
    measured.samples = read_collective_samples(*reader.required(rows), Seconds(1e-6));
    result.emplace(measured.group.id, std::move(measured));
  }
  return result;
}

std::map<std::string, Measured> shipped() {
  return read_all(shipped_profiles() + "/collectives.json", "curves", "samples");
}
std::map<std::string, Measured> published() {
  return read_all(published_file(), "tables", "rows_bytes_us");
}

CollectiveCurves shipped_curves() {
  auto curves = CollectiveCurves::load(shipped_profiles() + "/collectives.json");
  EXPECT_TRUE(curves);
  return *curves;
}

// Mean absolute error of the price against samples of at least `from` bytes.
double mean_error(const CollectiveCurves& curves, const Measured& measured, double from = 0) {
  const CollectiveModel model(measured.group.cluster, measured.group.group);
  std::vector<double> errors;
  for (const CollectiveSample& sample : measured.samples) {
    if (sample.size.value() < from) continue;
    const CurvePrice price = curves.price(measured.group.cluster, model, measured.group.kind,
                                          sample.size, DataType::kFp32);
    errors.push_back(std::abs(price.time / sample.time - 1));
  }
  return mean(errors);
}

// A message takes no longer than a longer one: a sample that did was disturbed.
std::map<std::string, Measured> without_disturbed(std::map<std::string, Measured> all) {
  for (auto& [id, measured] : all) {
    std::vector<CollectiveSample>& samples = measured.samples;
    for (std::size_t i = samples.size() - 1; i-- > 0;) {
      samples[i].time = std::min(samples[i].time, samples[i + 1].time);
    }
  }
  return all;
}

TEST(CollectiveCurves, GiveBackWhatWasMeasured) {
  const CollectiveCurves curves = shipped_curves();
  const std::map<std::string, Measured> all = without_disturbed(shipped());
  EXPECT_GE(all.size(), 30u);
  for (const auto& [id, measured] : all) {
    EXPECT_LT(mean_error(curves, measured), 0.02) << id;
  }
}

TEST(CollectiveCurves, CallTheirOwnGroupMeasuredAndOthersNot) {
  const CollectiveCurves curves = shipped_curves();
  const auto provenance = [&](const ClusterSpec& spec, std::int64_t ranks, double size,
                              CollectiveKind kind) {
    GroupShape shape;
    shape.ranks = shape.largest = shape.smallest = ranks;
    return curves.price(spec, {spec, shape}, kind, Bytes(size), DataType::kBf16).provenance;
  };
  EXPECT_EQ(provenance(a100(1), 8, 16e6, CollectiveKind::kAllReduce), Provenance::kMeasured);
  EXPECT_EQ(provenance(a100(1), 4, 16e6, CollectiveKind::kAllReduce), Provenance::kMeasured);
  EXPECT_EQ(provenance(a100(1), 6, 16e6, CollectiveKind::kAllReduce), Provenance::kInterpolated);
  EXPECT_EQ(provenance(a100(1), 8, 100e9, CollectiveKind::kAllReduce), Provenance::kExtrapolated);
  ClusterSpec volta = testing::machine(GpuArchitecture::kVolta, 150, 1);
  EXPECT_EQ(provenance(volta, 8, 16e6, CollectiveKind::kAllReduce), Provenance::kExtrapolated);
  const CollectiveCurves none;
  const GroupShape pair{2, 1, 2, 2, 0};
  EXPECT_EQ(
      none.price(a100(1), {a100(1), pair}, CollectiveKind::kAllReduce, Bytes(1e6), DataType::kBf16)
          .provenance,
      Provenance::kDataSheet);
}

// Tables that took no part in the curves, of machines that did: other owners, other test programs.
// Below the stated sizes those test programs measure their own overhead.
TEST(CollectiveCurves, PredictTablesTheyWereNotMadeFrom) {
  const CollectiveCurves curves = shipped_curves();
  const std::map<std::string, Measured> all = published();
  EXPECT_LT(mean_error(curves, all.at("h100x8-all-reduce-simumax"), 4e6), 0.035);
  EXPECT_LT(mean_error(curves, all.at("h200x8-all-reduce-ml-engineering"), 64e6), 0.035);
  EXPECT_LT(mean_error(curves, all.at("b200x8-all-reduce-p6"), 16e6), 0.06);
  EXPECT_LT(mean_error(curves, all.at("a100x8-all-reduce-ml-engineering"), 256e6), 0.04);
}

// Bus bandwidth of 8 GiB by number of GPUs (stas00/ml-engineering, network/README.md): only 8 is in
// the curves. The graph search knows speeds in steps, which costs up to 13 %.
TEST(CollectiveCurves, CarryOverToOtherGroupSizes) {
  const CollectiveCurves curves = shipped_curves();
  const auto bus = [&](const ClusterSpec& spec, std::int64_t ranks) {
    const GroupShape shape{ranks, 1, ranks, ranks, 0};
    const Bytes size(8.0 * 1024 * 1024 * 1024);
    const Seconds time =
        curves.price(spec, {spec, shape}, CollectiveKind::kAllReduce, size, DataType::kFp32).time;
    const double n = static_cast<double>(ranks);
    return (size / time).value() * 2 * (n - 1) / n * 1e-9;
  };
  const std::vector<std::pair<std::int64_t, double>> h200{
      {4, 363.3}, {5, 414.2}, {6, 435.6}, {7, 460.0}, {8, 473.1}};
  for (const auto& [ranks, measured] : h200) {
    EXPECT_NEAR(bus(h100(1), ranks) / measured, 1, 0.13) << ranks;
  }
  const std::vector<std::pair<std::int64_t, double>> b200s{
      {4, 673.2}, {5, 677.8}, {6, 778.2}, {7, 811.2}, {8, 838.0}};
  for (const auto& [ranks, measured] : b200s) {
    EXPECT_NEAR(bus(testing::b200(1), ranks) / measured, 1, 0.14) << ranks;
  }
}

// A ring of 2 drives fewer channels than one of 8: 150 of 205 GB/s.
TEST(CollectiveCurves, KnowThatSmallGroupsAreSlower) {
  const CollectiveCurves curves = shipped_curves();
  const auto bus = [&](const ClusterSpec& spec, std::int64_t ranks, CollectiveKind kind) {
    const GroupShape shape{ranks, 1, ranks, ranks, 0};
    const Bytes size(512.0 * 1024 * 1024);
    const double n = static_cast<double>(ranks);
    const double passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
    return (size / curves.price(spec, {spec, shape}, kind, size, DataType::kBf16).time).value() *
           passes * (n - 1) / n * 1e-9;
  };
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
    for (const ClusterSpec& spec : {a100(1), h100(1), testing::b200(1)}) {
      EXPECT_LT(bus(spec, 2, kind), 0.95 * bus(spec, 4, kind));
      EXPECT_LT(bus(spec, 4, kind), bus(spec, 8, kind));
    }
  }
  EXPECT_NEAR(bus(a100(1), 2, CollectiveKind::kAllGather), 150, 5);
}

// A group that nobody measured takes the steps of the nearest: n-1 steps of S/n bytes, whatever n.
// So with the tuner's hop latencies aside its ring all-gather at equal S/n grows as n-1.
TEST(CollectiveCurves, CarryTheTimeOfARingStep) {
  const CollectiveCurves shipped = shipped_curves();
  std::vector<CollectiveCurve> eight;
  for (const CollectiveCurve& curve : shipped.curves()) {
    if (curve.measured().group.ranks == 8) eight.push_back(curve);
  }
  const CollectiveCurves curves(std::move(eight));
  const auto time = [&](std::int64_t ranks, double per_rank) {
    const GroupShape shape{ranks, 1, ranks, ranks, 0};
    const Bytes size(per_rank * static_cast<double>(ranks));
    return curves
        .price(a100(1), {a100(1), shape}, CollectiveKind::kAllGather, size, DataType::kBf16)
        .time.value();
  };
  EXPECT_NEAR(time(8, 64e6) / time(2, 64e6), 7, 7 * 0.05);
  EXPECT_NEAR(time(4, 64e6) / time(2, 64e6), 3, 3 * 0.05);
}

TEST(CollectiveCurves, NeverBeatTheAsymptoteAndGrowWithSize) {
  const CollectiveCurves curves = shipped_curves();
  for (const std::int64_t ranks : {2, 3, 5, 8}) {
    const GroupShape shape{ranks, 1, ranks, ranks, 0};
    for (const ClusterSpec& spec : {a100(1), h100(1)}) {
      const CollectiveModel model(spec, shape);
      for (const CollectiveKind kind :
           {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
        for (double size = 1; size < 1e11; size *= 3) {
          const CurvePrice price = curves.price(spec, model, kind, Bytes(size), DataType::kBf16);
          EXPECT_GE(price.time.value() * price.asymptote.value(), size * (1 - 1e-12));
          EXPECT_TRUE(std::isfinite(price.time.value()));
        }
      }
    }
  }
}

Errors load_errors(const std::string& text) {
  const std::string file = ::testing::TempDir() + "/collective_curves.json";
  std::ofstream(file) << text;
  const Result<CollectiveCurves> curves = CollectiveCurves::load(file);
  return curves ? Errors{} : curves.error();
}

TEST(CollectiveCurves, RefuseFilesTheyCannotTrust) {
  EXPECT_FALSE(CollectiveCurves::load("/nonexistent/collectives.json"));
  EXPECT_FALSE(load_errors("{").empty());
  EXPECT_FALSE(load_errors(R"({"stepcast_collectives": 2, "curves": []})").empty());
  EXPECT_FALSE(load_errors(R"({"stepcast_collectives": 1})").empty());
  const std::string curve = R"({"stepcast_collectives": 1, "curves": [{"id": "x",
    "architecture": "ampere", "collective": "all_reduce", "ranks": 8, "domains": 2,
    "samples": [[1024, 10]]}]})";
  const std::string text = to_string(load_errors(curve));
  EXPECT_NE(text.find("scale_up"), std::string::npos) << text;
  EXPECT_NE(text.find("nic"), std::string::npos) << text;
  EXPECT_TRUE(load_errors(R"({"stepcast_collectives": 1, "curves": []})").empty());
}

// Samples of one algorithm do not speak for another, whose steps are others: between two samples
// nothing takes much longer than the longer of the two, also where NCCL changes its algorithm.
TEST(CollectiveCurve, RunsBetweenItsSamples) {
  std::vector<CollectiveSample> samples;
  // 8 H100 all-reduce like this: rings of 14 steps up to 1 MiB, then one step in the switch.
  const ClusterSpec node = h100(1);
  const CollectiveModel model(node, {8, 1, 8, 8, 0});
  for (double size = 1 << 16; size <= 1 << 28; size *= 2) {
    const Seconds time =
        model.estimate(CollectiveKind::kAllReduce, Bytes(size), DataType::kFp32).time(Bytes(size)) *
        1.5;
    samples.push_back({Bytes(size), time});
  }
  const MeasuredGroup measured{"made", h100(1), {8, 1, 8, 8, 0}, CollectiveKind::kAllReduce};
  const CollectiveCurves curves({CollectiveCurve(measured, samples)});
  bool changes = false;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const auto algorithm_at = [&](Bytes size) {
      return model.estimate(CollectiveKind::kAllReduce, size, DataType::kBf16).algorithm;
    };
    changes = changes || algorithm_at(samples[i - 1].size) != algorithm_at(samples[i].size);
    for (const double part : {0.25, 0.5, 0.75}) {
      const Bytes size = samples[i - 1].size * std::pow(2, part);
      const double time =
          curves.price(measured.cluster, model, CollectiveKind::kAllReduce, size, DataType::kBf16)
              .time.value();
      EXPECT_GE(time, 0.97 * samples[i - 1].time.value()) << size.value();
      EXPECT_LE(time, 1.03 * std::max(samples[i - 1].time, samples[i].time).value())
          << size.value();
    }
  }
  EXPECT_TRUE(changes);
}

}  // namespace
}  // namespace stepcast
