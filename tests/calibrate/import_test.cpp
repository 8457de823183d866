// SPDX-License-Identifier: Apache-2.0
// Real files as people published them (tests/data/imports/README.md says whose), and what is
// refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "calibrate/import/imported_profile.h"
#include "calibrate/profile_writer.h"
#include "core/json.h"
#include "core/temporary_folder.h"
#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "places.h"

namespace stepcast {
namespace {

const std::string kSource = source_folder();

std::string data(const std::string& name) { return kSource + "/tests/data/imports/" + name; }

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

Cluster cluster(const std::string& name) {
  const auto document = JsonDocument::parse("\"" + name + "\"", "test");
  Cluster out = read_cluster((*document)->root(), kSource + "/topologies");
  EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
  return out;
}

// A node of eight MI300X: no such cluster ships, and its fabric does not matter here.
ClusterSpec mi300x() {
  ClusterSpec out = cluster("dgx-h100").spec;
  out.accelerator = *find_accelerator("mi300x-192g", kSource + "/topologies");
  return out;
}

Imported imported(const std::string& file, const ClusterSpec& spec) {
  const auto read = import_files({file}, spec);
  EXPECT_TRUE(read) << to_string(read.error());
  return read ? *read : Imported();
}

Profile base(const Accelerator& device) {
  if (device.profile.empty()) return data_sheet_profile(device);
  return *load_profile(device.profile, kSource + "/calibrate/profiles");
}

// Writes the profile and reads it again, as predict does.
Profile profile_of(const Imported& measured, const ClusterSpec& spec) {
  const auto made = make_imported_profile(measured, spec, base(spec.accelerator), "mine");
  EXPECT_TRUE(made) << to_string(made.error());
  const testing::TemporaryFolder folder;
  const std::string file = folder / "mine.json";
  std::ofstream(file) << profile_text(*made);
  const auto read = load_profile(file, kSource + "/calibrate/profiles");
  EXPECT_TRUE(read) << to_string(read.error());
  return *read;
}

TEST(ImportedProfile, KeepsWhatTheHostsMemoryReaches) {
  const ClusterSpec spec = cluster("dgx-h100").spec;
  Imported measured;
  measured.own_run = OwnRun{};
  measured.own_run->host_memory = {
      {16, BytesPerSecond(200e9), BytesPerSecond(12e9), BytesPerSecond(7e9)}};
  EXPECT_EQ(profile_of(measured, spec).host_memory, measured.own_run->host_memory);
  EXPECT_FALSE(base(spec.accelerator).host_memory);
}

// A 16-bit product on `spec` is priced as measured, and takes the given time.
void expect_measured_product(const Profile& profile, const ClusterSpec& spec, std::int64_t m,
                             std::int64_t n, std::int64_t k, double seconds) {
  const KernelCosts costs(spec.accelerator, profile, KernelStyle::kFused);
  const Gemm product{GemmRole::kForward, 1, m, n, k, DataType::kBf16, DataType::kBf16, false};
  const KernelPrice price = costs.price(product);
  EXPECT_NEAR(price.time.value() / seconds, 1, 1e-3);
  EXPECT_EQ(price.provenance, Provenance::kMeasured);
}

std::string error_of(const Result<void>& result) {
  EXPECT_FALSE(result);
  return result ? "" : to_string(result.error());
}

std::vector<DeviceId> first_devices(int count) {
  std::vector<DeviceId> out;
  for (int i = 0; i < count; ++i) out.emplace_back(i);
  return out;
}

TEST(ImportNcclTests, APredictedAllReduceTakesTheTablesTime) {
  const Cluster a3 = cluster("gcp-a3-megax2");
  const Imported measured = imported(data("all_reduce_h100x16_a3_mega.txt"), a3.spec);
  ASSERT_EQ(measured.collectives.size(), 1);
  EXPECT_EQ(measured.collectives.front().ranks, 16);
  EXPECT_EQ(measured.collectives.front().nodes, 2);
  EXPECT_EQ(measured.collectives.front().launch, Launch::kOwn);
  EXPECT_EQ(measured.collectives.front().samples.size(), 2 * 31);  // out of place and in place
  const Profile profile = profile_of(measured, a3.spec);
  const CollectiveCosts costs(a3, kSource + "/calibrate/profiles", {}, profile.nccl);
  // Means of both columns.
  const std::pair<ByteCount, double> rows[] = {{1 << 20, (203.2 + 207.2) / 2},
                                               {1 << 26, (1261.6 + 1270.2) / 2},
                                               {1 << 30, (6759.0 + 6737.4) / 2}};
  for (const auto& [bytes, microseconds] : rows) {
    const CollectivePrice price =
        costs.price(CollectiveKind::kAllReduce, bytes, DataType::kFp32, first_devices(16));
    EXPECT_NEAR(price.time().value() * 1e6 / microseconds, 1, 1e-3) << bytes;
    EXPECT_EQ(price.provenance, Provenance::kMeasured);
  }
}

TEST(ImportNcclTests, ASlowerColumnBesideADisturbedOneIsLeftOut) {
  // 1024 bytes: 147.1 us and 123.1 us differ by less than a quarter, so both count; the first run
  // of an H100 pair is known to take several times as long as the rest.
  std::string text = text_of(data("all_reduce_h100x16_a3_mega.txt"));
  text.replace(text.find("   135.8 "), 9, "   472.7 ");
  Imported measured;
  const Cluster a3 = cluster("gcp-a3-megax2");
  ASSERT_TRUE(import_nccl_tests(text, "a.txt", a3.spec, measured));
  const auto made = make_imported_profile(measured, a3.spec, base(a3.spec.accelerator), "mine");
  ASSERT_TRUE(made);
  const auto& samples = made->collectives.front().samples;
  EXPECT_NEAR(samples.front().time.value() * 1e6, 123.5, 1e-6);
  EXPECT_NEAR(samples[7].time.value() * 1e6, (147.1 + 123.1) / 2, 1e-6);
  EXPECT_GT(made->collectives.front().held_out.median, 0);
}

TEST(ImportNcclTests, TakesTheGpuCountFromTheCommandAndAnUncheckedColumn) {
  const ClusterSpec spec = cluster("dgx-a100-80g").spec;
  const Imported measured = imported(data("sendrecv_a100x8.txt"), spec);
  ASSERT_EQ(measured.collectives.size(), 1);
  EXPECT_EQ(measured.collectives.front().kind, CollectiveKind::kSendReceive);
  EXPECT_EQ(measured.collectives.front().ranks, 8);
  EXPECT_EQ(measured.collectives.front().launch, Launch::kShared);
  EXPECT_NEAR(measured.collectives.front().samples.front().time.value(), 1211.2e-6, 1e-12);
}

TEST(ImportNcclTests, ReadsSeveralRunsOfAFileBehindLauncherTags) {
  const std::string table = text_of(data("sendrecv_a100x8.txt"));
  std::string tagged;
  std::istringstream lines(table + table);
  for (std::string line; std::getline(lines, line);) tagged += "[1,0]<stdout>:" + line + "\n";
  tagged.replace(tagged.rfind("sendrecv"), 8, "scatter");  // the second run
  Imported measured;
  ASSERT_TRUE(import_nccl_tests(tagged, "a.txt", cluster("dgx-a100-80g").spec, measured));
  EXPECT_EQ(measured.collectives.size(), 1);
  EXPECT_EQ(measured.left_out.begin()->second, 4);  // rows of scatter
}

TEST(ImportNcclTests, RefusesWhatItCannotTrustNamingTheLine) {
  const ClusterSpec spec = cluster("gcp-a3-megax2").spec;
  const std::string good = text_of(data("all_reduce_h100x16_a3_mega.txt"));
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    Imported none;
    const std::string error = error_of(import_nccl_tests(text, "run.txt", spec, none));
    EXPECT_TRUE(none.sources.empty());
    return error;
  };
  const auto contains = [](const std::string& error, const std::string& part) {
    return error.find(part) != std::string::npos;
  };
  // Row 1 of the table stands in line 32.
  std::string error = refused("0.00    0.00      0    123.5", "0.00    0.00     17    123.5");
  EXPECT_TRUE(contains(error, "run.txt:32: #wrong is 17")) << error;
  error = refused("all_reduce_perf", "all_gather_perf");
  EXPECT_TRUE(contains(error, "busbw/algbw is 1.873, and 0.938 for all_gather among 16")) << error;
  error = refused("   135.8 ", "   abc.d ");
  EXPECT_TRUE(contains(error, "run.txt:32: 'abc.d' is no time")) << error;
  error = refused("/opt/src/nccl-tests/build/all_reduce_perf", "run.sh");
  EXPECT_TRUE(contains(error, "does not say which operation")) << error;
  error = refused("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe");
  EXPECT_TRUE(contains(error, "run.txt:12: was measured on 'NVIDIA H100 PCIe'")) << error;
  error = refused("#wrong     time", "#errors  latency");
  EXPECT_TRUE(contains(error, "columns that are not known")) << error;
}

TEST(ImportTrace, AProductTakesTheTimeOfItsKernels) {
  // One product of three has kernels in the excerpt: 1083 us and 5 us.
  const ClusterSpec spec = mi300x();
  const Imported measured = imported(data("mm_mi300x.trace.json"), spec);
  ASSERT_EQ(measured.gemms.size(), 1);
  const Profile profile = profile_of(measured, spec);
  expect_measured_product(profile, spec, 256, 512, 131072, 1088e-6);
}

// A linear layer of 4096 tokens, 1024 inputs and 3072 outputs forward and backward, attention, an
// addition and an all-reduce.
TEST(ImportTrace, TellsRolesOfProductsFromTheForwardPass) {
  const ClusterSpec spec = cluster("dgx-h100x2").spec;
  Imported out;
  const auto read = import_trace(text_of(data("linear_h100.trace.json")), "trace.json", spec, out);
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(out.gemms.size(), 3);
  const auto is = [](const GemmSample& s, GemmRole role, std::int64_t m, std::int64_t n,
                     std::int64_t k, double microseconds) {
    const double flops = 2.0 * static_cast<double>(m * n * k);
    EXPECT_EQ(s.role, role);
    EXPECT_EQ(s.m, m);
    EXPECT_EQ(s.n, n);
    EXPECT_EQ(s.k, k);
    EXPECT_NEAR(flops / (989e12 * s.efficiency) * 1e6, microseconds, 1e-6);
  };
  is(out.gemms[0], GemmRole::kForward, 4096, 3072, 1024, 50);
  is(out.gemms[1], GemmRole::kInputGradient, 4096, 1024, 3072, 55);
  is(out.gemms[2], GemmRole::kWeightGradient, 3072, 1024, 4096, 60);  // computed transposed
  ASSERT_EQ(out.attention.at("fa2").size(), 1);
  EXPECT_TRUE(out.attention.at("fa2").front().sample.causal);
  EXPECT_EQ(out.attention.at("fa2").front().sample.heads, 16);
  EXPECT_NEAR(out.attention.at("fa2").front().seconds, 80e-6, 1e-12);
  ASSERT_EQ(out.elementwise.size(), 1);
  EXPECT_EQ(out.elementwise.front().kernel.bytes, 3.0 * 4096 * 1024 * 2);
  EXPECT_EQ(out.left_out.size(), 1);  // the fused kernel that no operator launched
}

TEST(ImportTrace, OfCollectivesThatWaitedTheFastestCounts) {
  const ClusterSpec spec = cluster("dgx-h100x2").spec;
  Imported out;
  ASSERT_TRUE(import_trace(text_of(data("linear_h100.trace.json")), "trace.json", spec, out));
  ASSERT_EQ(out.collectives.size(), 1);
  EXPECT_EQ(out.collectives.front().nodes, 2);  // ranks 0 and 8
  const auto made = make_imported_profile(out, spec, base(spec.accelerator), "mine");
  ASSERT_TRUE(made) << to_string(made.error());
  const CollectiveTable& table = made->collectives.front();
  ASSERT_EQ(table.samples.size(), 1);
  EXPECT_NEAR(table.samples.front().time.value(), 700e-6, 1e-12);
  EXPECT_EQ(table.group.group.nics, 1);  // one GPU of each node, and the NIC beside it
}

TEST(ImportTrace, RefusesTracesThatSayTooLittle) {
  const ClusterSpec spec = cluster("dgx-h100x2").spec;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& why) {
    std::string text = text_of(data("linear_h100.trace.json"));
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
    Imported none;
    const std::string error = error_of(import_trace(text, "trace.json", spec, none));
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  refused("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "deviceProperties[0].name");
  refused("\"cat\": \"kernel\"", "\"cat\": \"other\"", "ProfilerActivity.CUDA");
  refused("\"dur\": 50,", "\"dur\": NaN,", "NaN and Infinity are no JSON");
}

TEST(ImportTables, KernelsOfTheirDeviceArePricedAsMeasured) {
  const ClusterSpec spec = cluster("a100-pcie-8").spec;
  const Imported measured = imported(data("kernels.json"), spec);
  EXPECT_EQ(measured.gemms.size(), 48);
  const Profile profile = profile_of(measured, spec);
  // The table's first row: 0.78767 of 312 TFLOP/s.
  expect_measured_product(profile, spec, 4096, 1536, 5120,
                          2.0 * 4096 * 1536 * 5120 / (0.78767 * 312e12));
  EXPECT_LT(profile.sigma[static_cast<std::size_t>(Curve::kGemm)], 0.1);
}

TEST(ImportTables, OtherPrecisionsAndCollectives) {
  const ClusterSpec h800 = cluster("dgx-h800").spec;
  EXPECT_EQ(imported(data("kernels.json"), h800).gemms_fp8.size(), 8);
  const Cluster h200 = cluster("dgx-h200");
  const Imported measured = imported(data("collectives.json"), h200.spec);
  ASSERT_EQ(measured.collectives.size(), 1);
  const Profile profile = profile_of(measured, h200.spec);
  const CollectiveCosts costs(h200, "", {}, profile.nccl);
  const CollectivePrice price = costs.price(CollectiveKind::kAllReduce, ByteCount{1} << 30,
                                            DataType::kFp32, first_devices(8));
  EXPECT_NEAR(price.time().value() * 1e6 / 4053.39, 1, 1e-3);
  EXPECT_EQ(price.provenance, Provenance::kMeasured);
}

TEST(ImportTables, TheProjectsOwnTablesAndErrorsWithTheirPaths) {
  const ClusterSpec spec = cluster("dgx-h100").spec;
  const Imported own = imported(kSource + "/calibrate/published/gemm_a100_pcie_simumax.json",
                                cluster("a100-pcie-8").spec);
  EXPECT_EQ(own.gemms.size(), 183);
  Imported none;
  std::string error = error_of(import_tables(
      R"([{"id": "a", "source": "b", "kind": "GEMM TFLOP/s vs shape", "gpu": "H100-SXM",
           "columns": ["M", "N", "K", "tflops"],
           "rows": [[1, 2, 3, 4], [1, 2, 3], [1, 2, "x", 4]]}])",
      "t.json", spec, none));
  EXPECT_NE(error.find("t.json:3: [0].rows[1]: 3 cells under 4 columns"), std::string::npos)
      << error;
  EXPECT_NE(error.find("[0].rows[2][2]"), std::string::npos) << error;
  error = error_of(import_tables(R"({"busbw": [1, 2]})", "u.json", spec, none));
  EXPECT_NE(error.find("u.json: is JSON of no form that is known"), std::string::npos) << error;
}

// A list of one table of products of an H100, with a row per line from line 3 on.
std::string products(const std::string& columns, const std::vector<std::string>& rows) {
  std::string out =
      R"([{"id": "a", "source": "b", "kind": "GEMM time vs shape", "gpu": "H100-SXM",)"
      "\n\"columns\": [" +
      columns + "], \"rows\": [\n";
  for (const std::string& row : rows) out += (&row == &rows.front() ? "" : ",\n") + row;
  return out + "]}]";
}

std::string error_of_products(const std::string& columns, const std::vector<std::string>& rows) {
  Imported none;
  return error_of(import_tables(products(columns, rows), "t.json", cluster("dgx-h100").spec, none));
}

TEST(ImportTables, TheNameOfAColumnSaysItsUnit) {
  // 2 x 4096^3 FLOPs in 200 us are 687 TFLOP/s, of 989.
  const std::pair<const char*, const char*> stated[] = {{"time_us", "200"},
                                                        {"time_ms", "0.2"},
                                                        {"time_s", "0.0002"},
                                                        {"tflops", "687.19"},
                                                        {"efficiency", "0.694637"}};
  for (const auto& [column, value] : stated) {
    Imported out;
    const auto read = import_tables(products(std::string(R"("m", "n", "k", ")") + column + "\"",
                                             {std::string("[4096, 4096, 4096, ") + value + "]"}),
                                    "t.json", cluster("dgx-h100").spec, out);
    ASSERT_TRUE(read) << column << to_string(read.error());
    ASSERT_EQ(out.gemms.size(), 1u);
    EXPECT_NEAR(out.gemms.front().efficiency, 0.69484, 1e-3) << column;
  }
  const std::string error = error_of_products(R"("m", "n", "k", "time")", {"[8, 8, 8, 5]"});
  EXPECT_NE(error.find("t.json:3: [0].rows[0]: says nowhere how fast the kernel was"),
            std::string::npos)
      << error;
}

TEST(ImportTables, RowsThatCannotBeAreRefusedWithTheirLines) {
  const std::string columns = R"("m", "n", "k", "time_us")";
  const std::string good = "[4096, 4096, 4096, 200]";
  const std::pair<const char*, const char*> wrong[] = {
      {"[0, 4096, 4096, 200]", "0 under 'm' is out of range (from 1 to"},
      {"[4096, -4096, 4096, 200]", "-4096 under 'n' is out of range"},
      {"[4096, 4096, 4e18, 200]", "[0].rows[1][2]"},
      {"[4096, 4096, 4096, 0]", "0 under 'time_us' is out of range (more than 0)"},
      {"[4096, 4096, 4096, -200]", "-200 under 'time_us' is out of range"},
      {"[4096, 4096, 4096, null]", "says nowhere how fast the kernel was"},
      {"[4096, 4096, 4096, \"fast\"]", "[0].rows[1][3]"},
      // 139 us at 989 TFLOP/s, cards run at up to 1.15 of their data sheet.
      {"[4096, 4096, 4096, 120]", "120 us is 1.16 times as fast as the device's peak"},
      {"[4096, 4096, 4096, 0.2]", "0.2 us is 695 times as fast as the device's peak"},
      {"[4096, 4096, 4096, 200000000]", "times what it takes at the device's peak"},
      {"[1000000, 1000000, 1000000, 200]", "FLOPs are more than any kernel does"}};
  for (const auto& [row, what] : wrong) {
    const std::string error = error_of_products(columns, {good, row, good});
    EXPECT_TRUE(error.starts_with("t.json:4: [0].rows[1]")) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;  // of the one row
  }
}

// The first fifty are those that a command lists. Rows begin on line 3 of the file.
TEST(ImportTables, OfManyErrorsTheFirstHaveTheirLine) {
  const std::string error = error_of_products(
      R"("m", "n", "k", "time_us")", std::vector<std::string>(2000, "[4096, 4096, 4096, 0]"));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1000) << error.substr(0, 1000);
  EXPECT_TRUE(error.starts_with("t.json:3: [0].rows[0][3]")) << error.substr(0, 1000);
  EXPECT_NE(error.find("\nt.json:52: [0].rows[49][3]"), std::string::npos);
  EXPECT_NE(error.find("\nt.json: [0].rows[50][3]"), std::string::npos);
}

TEST(ImportTables, AUnitThatIsDeclaredHoldsForTheProjectsOwnTables) {
  const ClusterSpec spec = cluster("dgx-h100").spec;
  const auto table = [](const std::string& unit, const std::string& rows) {
    return R"({"stepcast_published": 1, "kind": "gemm", "source": "ours",
      "device": "h100-sxm5-80g", "columns": ["m", "n", "k", "time", "median"],
      "unit": ")" +
           unit + "\",\n\"rows\": [\n" + rows + "]}";
  };
  const std::pair<const char*, const char*> stated[] = {
      {"us", "[4096, 4096, 4096, 200, 9]"},
      {"ms", "[4096, 4096, 4096, 0.2, 9]"},
      {"s", "[4096, 4096, 4096, 0.0002, 9]"},
      {"TFLOP/s", "[4096, 4096, 4096, 9, 687.19]"},
      {"fraction of dense peak", "[4096, 4096, 4096, 9, 0.694637]"}};
  for (const auto& [unit, row] : stated) {
    Imported out;
    const auto read = import_tables(table(unit, row), "t.json", spec, out);
    ASSERT_TRUE(read) << unit << to_string(read.error());
    ASSERT_EQ(out.gemms.size(), 1u);
    EXPECT_NEAR(out.gemms.front().efficiency, 0.69484, 1e-3) << unit;
  }
  Imported none;
  std::string error = error_of(import_tables(table("ns", stated[0].second), "t.json", spec, none));
  EXPECT_NE(error.find("unit: 'ns' is not accepted"), std::string::npos) << error;
  // Microseconds that are declared as fractions.
  error = error_of(import_tables(
      table("fraction of dense peak", "[4096, 4096, 4096, 9, 0.69],\n[4096, 4096, 4096, 9, 200]"),
      "t.json", spec, none));
  EXPECT_NE(error.find("t.json:6: rows[1]: 0.6948 us is 200 times as fast"), std::string::npos)
      << error;
}

TEST(ImportNcclTests, WhatNoLinkCarriesIsRefusedWithItsLine) {
  const ClusterSpec spec = cluster("gcp-a3-megax2").spec;
  const std::string good = text_of(data("all_reduce_h100x16_a3_mega.txt"));
  const auto refused = [&](const std::string& row) {
    std::string text = good;
    const std::size_t begin = text.find("  1073741824"), end = text.find('\n', begin);
    EXPECT_NE(begin, std::string::npos);
    text.replace(begin, end - begin, row);
    Imported none;
    return error_of(import_nccl_tests(text, "run.txt", spec, none));
  };
  const std::string head = "1073741824 268435456 float sum -1 ";
  const std::string in_place = " 6737.4 159.37 298.82 0";
  const std::pair<std::string, const char*> wrong[] = {
      {"-8 2 float sum -1 6759.0 158.86 297.86 0" + in_place, "'-8' is no number of bytes"},
      {"nan 2 float sum -1 6759.0 158.86 297.86 0" + in_place, "'nan' is no number of bytes"},
      {head + "0 158.86 297.86 0" + in_place, "'0' is no time in us"},
      {head + "-6759.0 158.86 297.86 0" + in_place, "'-6759.0' is no time in us"},
      {head + "inf 158.86 297.86 0" + in_place, "'inf' is no time in us"},
      // These times are in ms: the bandwidths tell.
      {head + "6.7590 158.86 297.86 0" + in_place, "algbw is 158.9 GB/s, and 1073741824 bytes in"},
      // 8 NICs of 25 GB/s carry at most 200 GB/s into a node.
      {head + "2147.5 500.0 937.5 0" + in_place, "times as fast as the network of 200 GB/s"}};
  for (const auto& [row, what] : wrong) {
    const std::string error = refused(row);
    EXPECT_TRUE(error.starts_with("run.txt:")) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
  }
}

TEST(ImportTrace, KernelsWithoutATimeOrWithAnAbsurdOneAreRefused) {
  const ClusterSpec spec = cluster("dgx-h100x2").spec;
  const std::pair<const char*, const char*> wrong[] = {
      {"\"dur\": 0,", "has no time above zero"},
      {"\"dur\": -50,", "has no time above zero"},
      {"\"dur\": 1e-3,", "aten::mm: 0.001 us is 2.61e+04 times as fast as the device's peak"},
      {"\"dur\": 1e12,", "times what it takes at the device's peak"}};
  for (const auto& [to, what] : wrong) {
    std::string text = text_of(data("linear_h100.trace.json"));
    const std::string from = "\"dur\": 50,";
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    Imported none;
    const std::string error = error_of(import_trace(text, "trace.json", spec, none));
    EXPECT_TRUE(error.starts_with("trace.json: traceEvents[")) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
  }
}

// Each row is possible, and together they are no device.
TEST(Import, AFormThatMissesHalfOfTheRowsByMoreThanHalfIsAnError) {
  Imported out;
  for (int i = 0; i < 48; ++i) {
    const std::int64_t size = 1024 + 128 * (i / 3);
    constexpr double kFractions[] = {0.9, 0.15, 0.025};
    out.gemms.push_back({GemmRole::kForward, 1, size, size, size + i, kFractions[i % 3]});
  }
  const ClusterSpec spec = cluster("dgx-h100").spec;
  const auto made = make_imported_profile(out, spec, base(spec.accelerator), "mine");
  ASSERT_FALSE(made);
  const std::string error = to_string(made.error());
  EXPECT_NE(error.find("the best form of gemm bf16 misses half of the rows by"), std::string::npos)
      << error;
}

TEST(Import, AFileOfNothingIsRefusedBesideAGoodOne) {
  const std::string own = kSource + "/calibrate/published/";
  const auto read = import_files({data("kernels.json"), own + "gemm_b200_simumax.json"},
                                 cluster("a100-pcie-8").spec);
  ASSERT_FALSE(read);
  EXPECT_NE(to_string(read.error()).find("holds nothing of a100-pcie-80g"), std::string::npos);
  const auto grouped =
      import_files({own + "grouped_h100-sxm5-80g_aiconfigurator.json"}, cluster("dgx-h100").spec);
  ASSERT_FALSE(grouped);
  EXPECT_NE(to_string(grouped.error()).find("a table of \"grouped\", which no import takes"),
            std::string::npos);
}

TEST(Import, TellsFilesApartByWhatIsInThem) {
  const testing::TemporaryFolder folder;
  const ClusterSpec spec = cluster("dgx-h100").spec;
  const auto error = [&](const std::string& text) {
    const std::string file = folder / "x";
    std::ofstream(file) << text;
    const auto read = import_files({file}, spec);
    return read ? "" : to_string(read.error());
  };
  EXPECT_NE(error("\x1f\x8b\x08").find("its gzip does not end"), std::string::npos);
  EXPECT_NE(error("hello").find("nothing that can be imported"), std::string::npos);
  EXPECT_NE(error("").find("nothing that can be imported"), std::string::npos);
  const auto absent = import_files({folder / "absent"}, spec);
  ASSERT_FALSE(absent);
  EXPECT_NE(to_string(absent.error()).find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
