// SPDX-License-Identifier: Apache-2.0
// Profiles of processors, made of measurements that follow known laws.
#include "calibrate/cpu_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/protocol/needed_grid.h"
#include "cluster/local_cluster.h"
#include "core/seeded_random.h"
#include "core/statistics.h"
#include "core/temporary_folder.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "cost/mpi_collectives.h"
#include "operation/signature.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::TemporaryFolder;

MachineFacts facts() {
  MachineFacts out;
  out.processor = "Round Processor @ 2.50GHz";
  out.vendor = "GenuineIntel";
  out.clock_hz = 2.5e9;
  out.vector_bits = 512;
  out.fused_multiply_add = true;
  out.cores = 2;
  out.memory = ByteCount{16} << 30;
  return out;  // peak of a core: 2.5e9 x 2 x 16 x 2 = 160 GFLOP/s
}

Measurement around(double seconds, double spread = 0.01) {
  Measurement out;
  out.median_s = out.mean_s = seconds;
  out.deviation_s = seconds * spread;
  out.p10_s = seconds * (1 - spread);
  out.p90_s = seconds * (1 + spread);
  out.n = 50;
  out.stopped = Stop::kPrecise;
  return out;
}

Operation bare(const char* name, Operation::Work work) {
  return {name, Phase::kForward, std::move(work), {}, {}};
}

// A kernel that moves 8 bytes an element.
Operation kernel(MemoryBoundKind kind, std::int64_t elements) {
  const DataType type = DataType::kFp32;
  const KernelSize size{elements, 0, 8 * static_cast<double>(elements), 3};
  switch (kind) {
    case MemoryBoundKind::kSoftmax:
      return bare("kernel", AttentionSoftmax{false, {1, 1, 1, elements, 1}, type, size});
    case MemoryBoundKind::kCast:
      return bare("kernel", Cast{CastSubject::kLogits, false, type, type, size});
    case MemoryBoundKind::kNorm:
      return bare("kernel",
                  Normalization{Norm::kLayerNorm, true, true, false, false, type, type, size});
    case MemoryBoundKind::kAccumulate:
      return bare("kernel", Accumulate{type, type, size});
    default:
      return bare("kernel", ResidualAdd{false, false, false, type, size});
  }
}

// The seconds that the law gives with noise of up to `noise` to either side.
class Laboratory {
 public:
  explicit Laboratory(double noise) : noise_(noise) {}

  template <class Law>
  void measure(const Operation& operation, Law law) {
    const double seconds = law(operation) * (1 + noise_ * (2 * random_.uniform() - 1));
    out.operations.push_back({operation, around(seconds)});
  }

  CpuMeasurements out = [] {
    CpuMeasurements made;
    made.facts = facts();
    made.machine.processor = "what else is said";
    made.machine.cores = 1;
    made.machine.hostname = "here";
    made.date = "2026-01-31";
    return made;
  }();

 private:
  SeededRandom random_{11};
  double noise_;
};

// Through a file, as users do.
struct Loaded {
  explicit Loaded(const CpuMeasurements& measurements) {
    auto made = make_cpu_profile(measurements, "here");
    EXPECT_TRUE(made.has_value()) << (made ? "" : to_string(made.error()));
    if (!made) return;
    told = std::move(made->curves);
    unrepeated = std::move(made->unrepeated);
    const TemporaryFolder folder;
    folder.write("here.json", made->text);
    auto loaded = load_profile(folder / "here.json", folder / "");
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : to_string(loaded.error()));
    if (loaded) profile = std::move(*loaded);
  }
  KernelCosts costs() const {
    return KernelCosts(cpu_accelerator(facts(), 4), profile, KernelStyle::kFused,
                       framework_named("native"));
  }
  const CpuCurve& curve(const std::string& name) const {
    return *std::find_if(told.begin(), told.end(), [&](const auto& c) { return c.name == name; });
  }
  Profile profile;
  std::vector<CpuCurve> told;
  std::vector<std::string> unrepeated;
};

// Seconds: a rate that short products do not reach, operands from memory, a fixed part.
double gemm_law(const Operation& operation) {
  const Gemm& gemm = std::get<Gemm>(operation.work);
  return flops_of(gemm) / 100e9 + 2e-6;
}

// A law closer to real products: prologues along k, operands from memory at 20 GB/s, and weight
// gradients a tenth slower.
double uneven_law(const Operation& operation) {
  const Gemm& gemm = std::get<Gemm>(operation.work);
  const double role = gemm.role == GemmRole::kWeightGradient ? 1.1 : 1;
  return role * flops_of(gemm) / 100e9 * (1 + 24 / static_cast<double>(gemm.k)) +
         traffic_of(gemm).value() / 20e9 + 2e-6;
}

// The program of a GPT of hidden size 512: 4 layers, 8 heads, 256 tokens, vocabulary 1024.
Program small_gpt() {
  GptCase c;
  c.framework = "native";
  c.attention = "flash";
  c.precision = "fp32";
  return lower(testing::gpt(c));
}
NeededMeasurements needed_of_gpt() {
  GptCase c;
  c.framework = "native";
  c.attention = "flash";
  c.precision = "fp32";
  const Scenario scenario = testing::gpt(c);
  return needed(scenario, lower(scenario), RankGrid(scenario.layout));
}

template <class Work>
std::vector<Operation> of_kind(const NeededMeasurements& all) {
  std::vector<Operation> out;
  for (const NeededKernel& kernel : all.kernels) {
    if (std::holds_alternative<Work>(kernel.operation.work)) out.push_back(kernel.operation);
  }
  return out;
}

// |predicted / law - 1| of operations that were not measured.
template <class Law>
std::vector<double> errors_of(const KernelCosts& costs, const std::vector<Operation>& operations,
                              Law law, std::set<Provenance>& provenances) {
  std::vector<double> out;
  for (const Operation& operation : operations) {
    const KernelPrice price = costs.price(operation);
    out.push_back(std::abs(price.time.value() / law(operation) - 1));
    provenances.insert(price.provenance);
  }
  return out;
}

// Measures what a GPT needs and a grid around it; gives the errors at other shapes near those.
std::vector<double> errors_at_other_products(double (*law)(const Operation&)) {
  const NeededMeasurements needed = needed_of_gpt();
  Laboratory laboratory(0.017);  // a standard deviation of 1 %
  for (const NeededMeasurements& shapes : {needed, grid(needed)}) {
    for (const Operation& operation : of_kind<Gemm>(shapes)) laboratory.measure(operation, law);
  }
  const Loaded loaded(laboratory.out);
  EXPECT_EQ(loaded.curve("gemm").samples, 15 + 36);
  EXPECT_LT(loaded.curve("gemm").held_out.median, 0.03);
  GridOptions others;
  others.seed = 99;
  others.around_octaves = 0.8;
  std::set<Provenance> provenances;
  const std::vector<double> errors =
      errors_of(loaded.costs(), of_kind<Gemm>(grid(needed, others)), law, provenances);
  EXPECT_GE(errors.size(), 30u);
  EXPECT_TRUE(provenances.contains(Provenance::kInterpolated));
  EXPECT_FALSE(provenances.contains(Provenance::kDataSheet));
  return errors;
}

TEST(CpuProfile, PredictsProductsThatWereNotMeasured) {
  const std::vector<double> errors = errors_at_other_products(gemm_law);
  EXPECT_LT(median(errors), 0.01);
  EXPECT_LT(quantile(errors, 0.9), 0.02);
}

TEST(CpuProfile, PredictsProductsOfALawThatItsFormDoesNotHold) {
  const std::vector<double> errors = errors_at_other_products(uneven_law);
  EXPECT_LT(median(errors), 0.02);
  EXPECT_LT(quantile(errors, 0.9), 0.05);
}

// Products of experts at 0.8 of the rate of dense ones, and 2 us for each group: the profile's form
// of them prices others.
TEST(CpuProfile, ProductsOfExpertsHaveAFormOfTheirOwn) {
  const Accelerator core = cpu_accelerator(facts(), 1);
  const GemmFit dense = data_sheet_profile(core).gemm;
  GroupedFit slow;
  slow.rate = 0.8;
  slow.group_s = 2e-6;
  const auto law = [&](const Operation& o) {
    const auto* grouped = std::get_if<GroupedGemm>(&o.work);
    return grouped == nullptr
               ? gemm_form_time(dense, core, std::get<Gemm>(o.work)).value()
               : grouped_form_time(slow, dense, core, mean_gemm_of(*grouped)).value();
  };
  const auto experts = [](GemmRole role, std::int64_t rows) {
    return bare("experts",
                GroupedGemm{role, 4, rows, 512, 256, DataType::kFp32, DataType::kFp32, false});
  };
  Laboratory laboratory(0);
  for (const std::int64_t n : {128, 256, 512, 1024}) {
    laboratory.measure(
        bare("g", Gemm{GemmRole::kForward, 1, n, n, n, DataType::kFp32, DataType::kFp32, false}),
        law);
  }
  for (const std::int64_t rows : {256, 1024, 4096}) {
    for (const GemmRole role :
         {GemmRole::kForward, GemmRole::kInputGradient, GemmRole::kWeightGradient}) {
      laboratory.measure(experts(role, rows), law);
    }
  }
  const Loaded loaded(laboratory.out);
  const Operation other = experts(GemmRole::kForward, 2048);
  EXPECT_NEAR(loaded.costs().price(other).time.value() / law(other), 1, 0.05);
  EXPECT_EQ(loaded.profile.grouped_provenance, Provenance::kInterpolated);
}

// Three products at half of the speed that the data sheet's form gives them.
TEST(CpuProfile, ScalesTheFamilysFormToAFewProducts) {
  const Accelerator core = cpu_accelerator(facts(), 1);
  const KernelCosts sheet(core, data_sheet_profile(core), KernelStyle::kFused);
  const auto square = [](std::int64_t n) {
    return Gemm{GemmRole::kForward, 1, n, n, n, DataType::kFp32, DataType::kFp32, false};
  };
  Laboratory laboratory(0);
  for (const std::int64_t n : {256, 512, 1024}) {
    laboratory.measure(bare("g", square(n)),
                       [&](const Operation& o) { return 2 * sheet.price(o).time.value(); });
  }
  const Loaded loaded(laboratory.out);
  const KernelPrice far = loaded.costs().price(square(8192));
  EXPECT_NEAR(far.time / (2.0 * sheet.price(square(8192)).time), 1, 0.002);
  EXPECT_EQ(far.provenance, Provenance::kExtrapolated);
  EXPECT_EQ(loaded.profile.provenance, Provenance::kExtrapolated);
}

TEST(CpuProfile, PricesWhatWasMeasuredAtItsMedian) {
  const Operation gemm = bare(
      "qkv", Gemm{GemmRole::kForward, 1, 64, 96, 128, DataType::kFp32, DataType::kFp32, false});
  const Operation norm = kernel(MemoryBoundKind::kNorm, 4096);
  Laboratory laboratory(0);
  laboratory.measure(gemm, [](const Operation&) { return 1.23456e-5; });
  laboratory.measure(norm, [](const Operation&) { return 7.5e-6; });
  const Loaded loaded(laboratory.out);
  const KernelPrice price = loaded.costs().price(gemm);
  EXPECT_DOUBLE_EQ(price.time.value(), 1.23456e-5);
  EXPECT_EQ(price.provenance, Provenance::kMeasured);
  EXPECT_TRUE(price.exact);
  EXPECT_EQ(price.curve, Curve::kGemm);
  EXPECT_DOUBLE_EQ(loaded.costs().price(norm).time.value(), 7.5e-6);
  EXPECT_FALSE(loaded.costs().price(std::get<Gemm>(gemm.work)).exact);  // the surface alone
}

// A signature twice: the one of more samples counts.
TEST(CpuProfile, TakesTheBetterOfTwoMeasurements) {
  const Operation norm = kernel(MemoryBoundKind::kNorm, 64);
  Laboratory laboratory(0);
  for (const double seconds : {1e-6, 2e-6, 3e-6}) {
    laboratory.measure(norm, [&](const Operation&) { return seconds; });
  }
  laboratory.out.operations[1].measurement.n = 80;
  EXPECT_DOUBLE_EQ(Loaded(laboratory.out).costs().price(norm).time.value(), 2e-6);
}

// All kernels of a program that was measured whole are priced as measured.
TEST(CpuProfile, HoldsEveryKernelOfAMeasuredProgram) {
  Laboratory laboratory(0.01);
  double seconds = 1e-5;
  for (const NeededKernel& kernel : needed_of_gpt().kernels) {
    laboratory.measure(kernel.operation, [&](const Operation&) { return seconds *= 1.1; });
  }
  const Loaded loaded(laboratory.out);
  const KernelCosts costs = loaded.costs();
  int kernels = 0;
  for_each_operation(small_gpt(), [&](const Operation& operation) {
    if (!runs_kernel(operation.work)) return;
    EXPECT_EQ(costs.price(operation).provenance, Provenance::kMeasured) << signature(operation);
    ++kernels;
  });
  EXPECT_GT(kernels, 30);
}

Operation attention(bool backward, std::int64_t heads, std::int64_t length) {
  return bare("attention",
              Attention{backward, 1, heads, heads, length, length, 64, true, DataType::kFp32});
}

// 30 GFLOP/s forward, 20 backward, and half of that at 16 keys.
double attention_law(const Operation& operation) {
  const Attention& a = std::get<Attention>(operation.work);
  const double length = static_cast<double>(a.key_length);
  return flops_of(a) / (a.backward ? 20e9 : 30e9) * (length + 16) / length;
}

TEST(CpuProfile, PredictsAttentionOfOtherLengths) {
  Laboratory laboratory(0.017);
  for (const bool backward : {false, true}) {
    for (const std::int64_t length : {64, 128, 256, 512, 1024}) {
      laboratory.measure(attention(backward, 8, length), attention_law);
    }
  }
  const Loaded loaded(laboratory.out);
  std::set<Provenance> provenances;
  const std::vector<double> errors =
      errors_of(loaded.costs(),
                {attention(false, 8, 96), attention(false, 8, 384), attention(true, 8, 192),
                 attention(true, 4, 768), attention(false, 16, 2048), attention(true, 8, 2048)},
                attention_law, provenances);
  for (const double error : errors) EXPECT_LT(error, 0.04);
  EXPECT_TRUE(provenances.contains(Provenance::kInterpolated));
  EXPECT_TRUE(provenances.contains(Provenance::kExtrapolated));  // longer than any sample
}

// The family's backward pass does 0.85 times its forward pass's operations per second: so does
// this.
TEST(CpuProfile, KeepsTheFamilysRatioWhereADirectionIsMissing) {
  Laboratory laboratory(0);
  laboratory.measure(attention(false, 8, 512), attention_law);
  const Loaded loaded(laboratory.out);
  const AttentionFit& fit = loaded.profile.attention;
  EXPECT_NEAR(fit.backward_efficiency / fit.forward_efficiency, 0.85, 1e-3);
  EXPECT_NEAR(loaded.costs().price(attention(false, 8, 512)).time /
                  Seconds(attention_law(attention(false, 8, 512))),
              1, 1e-5);
}

// Softmax computes: 6 times the time of its bytes at 8 GB/s. Casts and sums stream.
double streaming_law(const Operation& operation) {
  const MemoryBound kernel = *memory_bound(operation.work);
  return 1e-6 + kernel.bytes * (kernel.kind == MemoryBoundKind::kSoftmax ? 6 : 1) / 8e9;
}

TEST(CpuProfile, PredictsMemoryBoundKernelsOfOtherSizes) {
  Laboratory laboratory(0.017);
  for (const auto kind :
       {MemoryBoundKind::kSoftmax, MemoryBoundKind::kCast, MemoryBoundKind::kDropoutAdd}) {
    for (const std::int64_t elements : {1 << 8, 1 << 12, 1 << 16, 1 << 20}) {
      laboratory.measure(kernel(kind, elements), streaming_law);
    }
  }
  const Loaded loaded(laboratory.out);
  std::set<Provenance> provenances;
  const std::vector<double> errors =
      errors_of(loaded.costs(),
                {kernel(MemoryBoundKind::kSoftmax, 3000), kernel(MemoryBoundKind::kSoftmax, 300000),
                 kernel(MemoryBoundKind::kCast, 100), kernel(MemoryBoundKind::kDropoutAdd, 3 << 20),
                 // Never measured: streams like the measured ones.
                 kernel(MemoryBoundKind::kAccumulate, 1 << 18)},
                streaming_law, provenances);
  for (const double error : errors) EXPECT_LT(error, 0.03);
  const MemoryFit& fit = loaded.profile.memory;
  EXPECT_NEAR(fit.kind_factor[static_cast<std::size_t>(MemoryBoundKind::kSoftmax)], 6, 0.2);
  EXPECT_EQ(fit.kind_factor[static_cast<std::size_t>(MemoryBoundKind::kAccumulate)], 1);
  EXPECT_NEAR(fit.fraction, 0.8, 0.02);  // of 10 GB/s
  EXPECT_LT(loaded.profile.sigma[static_cast<std::size_t>(Curve::kMemoryBound)], 0.05);
}

// One kind's single point tells its rate; nothing can be left out, so the data sheet's error stays.
TEST(CpuProfile, TakesASingleKernelForItsKind) {
  Laboratory laboratory(0);
  laboratory.measure(kernel(MemoryBoundKind::kNorm, 1 << 20), streaming_law);
  const Loaded loaded(laboratory.out);
  const Operation twice = kernel(MemoryBoundKind::kNorm, 1 << 21);
  EXPECT_NEAR(loaded.costs().price(twice).time.value() / streaming_law(twice), 1, 0.01);
  EXPECT_EQ(loaded.curve("memory_bound").log_error, 0.5);
  EXPECT_EQ(loaded.curve("gemm").log_error, 0.4);  // nor was a product measured
}

MeasuredCollective all_reduce(int concurrent) {
  MeasuredCollective out;
  out.placement = {0, 0};
  out.concurrent = concurrent;
  out.cpu_share = 0.75;
  out.stretch = 1.25;
  for (const ByteCount bytes : {1 << 10, 1 << 14, 1 << 18, 1 << 22}) {  // 20 us and 2 GB/s
    out.points.push_back({bytes, around(20e-6 + static_cast<double>(bytes) / 2e9)});
  }
  return out;
}

TEST(CpuProfile, PricesCollectivesAtAndBetweenTheirSizes) {
  Laboratory laboratory(0);
  laboratory.out.collectives = {all_reduce(1)};
  MeasuredCollective send = all_reduce(1);
  send.kind = CollectiveKind::kSendReceive;
  send.points[2].measurement = around(1.0);
  laboratory.out.collectives.push_back(send);
  const Loaded loaded(laboratory.out);
  const Cluster cluster = local_cluster(facts(), 2);
  const MpiCollectives costs(cluster, loaded.profile.mpi);
  const std::vector<DeviceId> ranks = {DeviceId(0), DeviceId(1)};
  const auto at = [&](CollectiveKind kind, double bytes) {
    return costs.price(kind, Bytes(bytes), ranks);
  };
  const CollectivePrice hit = at(CollectiveKind::kAllReduce, 1 << 18);
  EXPECT_NEAR((hit.latency + hit.work / hit.rate_bound).value(), 20e-6 + (1 << 18) / 2e9, 1e-9);
  EXPECT_EQ(hit.provenance, Provenance::kMeasured);
  EXPECT_DOUBLE_EQ(hit.cpu_share, 0.75);
  EXPECT_NEAR(hit.core_weight, 1.5, 1e-9);  // 0.75 / (1.25 - 0.75)
  const CollectivePrice between = at(CollectiveKind::kAllReduce, 100000);
  EXPECT_NEAR((between.latency + between.work / between.rate_bound).value(), 20e-6 + 100000 / 2e9,
              1e-9);
  EXPECT_EQ(between.provenance, Provenance::kInterpolated);
  const CollectivePrice sent = at(CollectiveKind::kSendReceive, 1 << 18);
  EXPECT_NEAR((sent.latency + sent.work / sent.rate_bound).value(), 1, 1e-6);
  // An affine law is fitted without error, except for the one odd point of the send.
  EXPECT_EQ(loaded.curve("collective").log_error, 0.02);
  EXPECT_EQ(loaded.curve("point_to_point").log_error, 3);
}

// log(1.05/0.95) lies between the 10 % and 90 % quantiles, which are 2.563 standard deviations
// apart: the deviation is 0.039.
TEST(CpuProfile, StatesTheSpreadOfWhatWasMeasuredAsItStands) {
  Laboratory laboratory(0);
  laboratory.measure(attention(false, 8, 64), attention_law);
  EXPECT_EQ(Loaded(laboratory.out).curve("exact").log_error, 0.02);
  laboratory.out.operations[0].measurement = around(1e-4, 0.5);
  const Loaded loaded(laboratory.out);
  // The error of the mean of 50 samples whose deviation is half of their mean.
  EXPECT_NEAR(loaded.profile.sigma[static_cast<std::size_t>(Curve::kExact)], 0.5 / std::sqrt(50.0),
              1e-4);
}

TEST(CpuProfile, ForecastsTakeMeansAndScaleWhatWasNotMeasuredByTheDisturbance) {
  Laboratory laboratory(0);
  laboratory.measure(attention(false, 8, 64), attention_law);
  laboratory.measure(attention(false, 8, 128), attention_law);
  for (MeasuredOperation& measured : laboratory.out.operations) {
    measured.measurement.mean_s = 1.25 * measured.measurement.median_s;
  }
  const Loaded loaded(laboratory.out);
  EXPECT_NEAR(loaded.profile.disturbance, 1.25, 1e-3);
  const MeasuredOperation& first = laboratory.out.operations[0];
  EXPECT_NEAR(
      loaded.profile.exact.at(signature(first.operation)).mean.value() / first.measurement.median_s,
      1.25, 1e-5);
  Profile quiet = loaded.profile;
  quiet.disturbance = 1;
  const Accelerator core = cpu_accelerator(facts(), 1);
  const Operation other = attention(false, 8, 96);
  EXPECT_NEAR(KernelCosts(core, loaded.profile, KernelStyle::kInSteps).price(other).time /
                  KernelCosts(core, quiet, KernelStyle::kInSteps).price(other).time,
              loaded.profile.disturbance, 1e-12);
}

// The mean of a kernel that was slow in one half of the run only is not what the next run takes.
TEST(CpuProfile, AMeanThatDoesNotRepeatIsNotBelieved) {
  Laboratory laboratory(0);
  laboratory.measure(attention(false, 8, 64), attention_law);
  laboratory.measure(attention(false, 8, 128), attention_law);
  for (MeasuredOperation& measured : laboratory.out.operations) {
    measured.measurement.mean_s = 1.1 * measured.measurement.median_s;
  }
  Measurement& first = laboratory.out.operations[0].measurement;
  first.mean_s = 5 * first.median_s;
  first.halves = 9;
  const Loaded loaded(laboratory.out);
  const std::string name = signature(laboratory.out.operations[0].operation);
  EXPECT_EQ(loaded.unrepeated, std::vector{name});
  EXPECT_NEAR(loaded.profile.exact.at(name).mean.value() / first.median_s, 1.1, 1e-3);
}

TEST(CpuProfile, NamesTheMachineAsForecastsSeeIt) {
  Laboratory laboratory(0);
  laboratory.measure(attention(false, 8, 64), attention_law);
  laboratory.out.host.collective_s = 3e-6;
  const Loaded loaded(laboratory.out);
  EXPECT_EQ(loaded.profile.machine.processor, facts().processor);
  EXPECT_EQ(loaded.profile.machine.cores, 2);
  EXPECT_EQ(loaded.profile.device, "cpu");
  for (const Framework framework : all_frameworks()) {
    EXPECT_TRUE(loaded.profile.own_host[framework]);
    EXPECT_EQ(loaded.profile.host[framework].launch_s, 0);
    EXPECT_DOUBLE_EQ(loaded.profile.host[framework].collective_s, 3e-6);
  }
  const auto first = make_cpu_profile(laboratory.out, "a");
  const auto second = make_cpu_profile(laboratory.out, "a");
  EXPECT_EQ(first->text, second->text);
  EXPECT_NE(first->text.find("\"date\": \"2026-01-31\""), std::string::npos);
  EXPECT_NE(first->text.find("\"hostname\": \"here\""), std::string::npos);
}

TEST(CpuProfile, HasWhatTheMemoryOfTheMachineReaches) {
  Laboratory laboratory(0);
  laboratory.measure(attention(false, 8, 64), attention_law);
  EXPECT_FALSE(Loaded(laboratory.out).profile.host_memory);
  const HostMemory measured{2, BytesPerSecond(31.25e9), BytesPerSecond(18e9), BytesPerSecond(9e9)};
  laboratory.out.host_memory = measured;
  EXPECT_EQ(Loaded(laboratory.out).profile.host_memory, measured);
}

TEST(CpuProfile, ListsAllThatItCannotBeMadeOf) {
  Laboratory laboratory(0);
  EXPECT_FALSE(make_cpu_profile(laboratory.out, "empty"));
  laboratory.measure(attention(false, 8, 64), attention_law);
  laboratory.out.operations[0].measurement.n = 0;
  laboratory.out.collectives = {all_reduce(1), all_reduce(1)};
  laboratory.out.collectives[0].placement = {0};
  laboratory.out.collectives[1].points.resize(1);
  const auto made = make_cpu_profile(laboratory.out, "broken");
  ASSERT_FALSE(made);
  const std::string text = to_string(made.error());
  EXPECT_EQ(made.error().size(), 3u) << text;
  EXPECT_NE(text.find("attention forward 1x8x8x64x64x64 causal fp32: 0 samples"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1 members"), std::string::npos) << text;
  EXPECT_NE(text.find("at 1 sizes"), std::string::npos) << text;
}

}  // namespace
}  // namespace stepcast
