// SPDX-License-Identifier: Apache-2.0
// The memory-bound kernels of a decoder layer read and write little more, forward and backward,
// than the least that fusion allows: a chain of them between two products reads what comes into it
// and writes what leaves it, each number once. Products, attention and the layer's borders are
// where chains begin and end. docs/cuda-kernels.md shows the table.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "calibrate/measure/gpu/gpu_call.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/norm.h"
#include "kernels/emulated/runtime.h"
#include "kernels/emulated/traffic.h"
#include "places.h"
#include "program/executor_workspace.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// A block's share of a cache: some rows of an array, never an array.
constexpr std::int64_t kCacheBytes = 64 * 1024;
constexpr double kLimit = 1.05;

constexpr double kHalf = 2, kSingle = 4;  // bytes

// Rows and columns that pass once, and vectors of weights or their sums.
double passes(const KernelSize& size, double bytes) {
  return bytes * static_cast<double>(size.elements);
}
double vectors(double width, double bytes) { return bytes * width; }

// The least that one kernel for the operation moves. bf16 tensors; gradients of weights are summed
// in fp32, which reads and writes them.
constexpr double kSummed = 2 * kSingle;

double least(const Normalization& norm) {
  const auto width = static_cast<double>(norm.size.width);
  const double of_weights = norm.bias ? 2 : 1;
  if (!norm.backward) {
    const double in_and_out = norm.residual ? 4 : 2;
    return passes(norm.size, in_and_out * kHalf) +
           vectors(width, (of_weights + (norm.branch_bias ? 1 : 0)) * kHalf);
  }
  return passes(norm.size, (norm.residual ? 4 : 3) * kHalf) +
         vectors(width, kHalf + of_weights * kSummed);
}
// SwiGLU reads two numbers for each that it writes, and backward writes two. The biases are as wide
// as what is read.
double least(const Activation& activation) {
  const double ups = activation.mlp == Mlp::kSwiglu ? 2 : 1;
  const double of_bias = (activation.bias ? kHalf : 0) + (activation.bias_gradient ? kSummed : 0);
  return passes(activation.size, (activation.backward ? 2 * ups + 1 : ups + 1) * kHalf) +
         vectors(ups * static_cast<double>(activation.size.width), of_bias);
}
// Angles need not be read: they can be computed.
double least(const Rotary& rotary) { return passes(rotary.size, 2 * kHalf); }
double least(const ResidualAdd& sum) {
  return passes(sum.size, 3 * kHalf + (sum.dropout ? 1 : 0)) +
         vectors(static_cast<double>(sum.size.width), sum.bias ? kHalf : 0);
}
double least(const BiasGradient& gradient) {
  return passes(gradient.size, kHalf) + vectors(static_cast<double>(gradient.size.width), kSummed);
}
// Logits once, and backward also their gradient; of each row the target, and three figures of which
// backward reads two.
double least(const CrossEntropy& loss) {
  const auto rows = static_cast<double>(loss.size.rows());
  return passes(loss.size, (loss.backward ? 2 : 1) * kHalf) +
         rows * (8 + (loss.backward ? 2 : 3) * kSingle);
}
double least(const SquaredNorm& norm) { return passes(norm.size, kSingle); }
// Reads gradient, weight and two moments, and writes the weight twice and the moments.
double least(const OptimizerUpdate& update) {
  EXPECT_TRUE(update.clips && update.rounds);
  return passes(update.size, 7 * kSingle + kHalf);
}
// Casts to fp8 may write two copies; finding a scale writes none.
double least(const Cast& cast) {
  if (cast.subject == CastSubject::kScale) {
    return passes(cast.size, static_cast<double>(size_of(cast.from)));
  }
  if (is_scaled(cast.to)) {
    return passes(cast.size, static_cast<double>(size_of(cast.from) + cast.size.launches));
  }
  return passes(cast.size, static_cast<double>(size_of(cast.from) + size_of(cast.to)));
}

// Places of rows depend on what all tokens have chosen, which so is read twice.
double least(const RouterScores& scores) {
  const double figures = scores.backward ? 2 * kSingle + 2 : 2 * kSingle + 1;
  const auto rows = static_cast<double>(scores.size.rows() * scores.top_k);
  return passes(scores.size, figures) + (scores.backward ? rows * kSingle : 0);
}
// Rows on both sides, and of each on the side that has more of them its place.
double least(const TokenPermutation& moved) {
  const double both = moved.size.bytes / (kHalf * static_cast<double>(moved.size.width));
  const auto written = static_cast<double>(moved.size.rows());
  return moved.size.bytes + 8 * std::max(written, both - written);
}
double least(const ExpertActivation& activation) {
  const double ups = activation.mlp == Mlp::kSwiglu ? 2 : 1;
  return passes(activation.size, (activation.backward ? 2 * ups + 1 : ups + 1) * kHalf) +
         static_cast<double>(activation.size.rows()) * kSingle * (activation.backward ? 2 : 1);
}
double least(const Dropout& dropout) { return passes(dropout.size, 2 * kHalf + 1); }

// RMSNorm in bf16 writes the gradient of its input, and each block its sums of the weight's
// gradient in fp32. A block has so many rows that they move 22 times what its sums do: 22 * 8 / 6 +
// 1 = 30.
std::int64_t blocks_of_norm_backward(std::int64_t rows, std::int64_t width) {
  const std::vector<cuda::Bf16> matrix(static_cast<std::size_t>(rows * width)),
      vector(static_cast<std::size_t>(width));
  const std::vector<float> sums(static_cast<std::size_t>(width));
  const cuda::DeviceArray<cuda::Bf16> x(matrix), weight(vector), dy(matrix), dx(matrix);
  const cuda::DeviceArray<float> gradient(sums);
  const cuda::DeviceMemory workspace(static_cast<std::size_t>(cuda::column_sum_workspace(width)) *
                                     sizeof(float));
  emulated::TrafficCounter counter(kCacheBytes);
  cuda::norm_backward<cuda::Bf16, float>(
      NormKind::kRms, x.data(), weight.data(), dy.data(), nullptr, dx.data(), gradient.data(),
      nullptr, false, rows, width, width, width, static_cast<float*>(workspace.data()), nullptr);
  for (const emulated::KernelTraffic& kernel : counter.take()) {
    if (kernel.name != "norm_backward") continue;
    return (kernel.written_bytes - 2 * rows * width) / (4 * width);
  }
  return 0;
}

TEST(Waves, OfTheNormsBackwardAreWhole) {
  constexpr std::int64_t kRows = 3000, kWidth = 256;
  const std::int64_t usual = emulated::blocks_at_once();
  EXPECT_EQ(blocks_of_norm_backward(kRows, kWidth), 100);  // less than a wave
  for (const auto& [at_once, blocks] : {std::pair{64, 64}, {33, 99}, {100, 100}}) {
    emulated::set_blocks_at_once(at_once);
    EXPECT_EQ(blocks_of_norm_backward(kRows, kWidth), blocks) << at_once << " at once";
  }
  emulated::set_blocks_at_once(usual);
}

template <class Work>
concept HasLeast = requires(const Work& work) {
  least(work);
};

struct Row {
  std::string name;
  double least = 0, read = 0, written = 0;
  double moved() const { return read + written; }
  double ratio() const { return moved() / least; }
};

class Table {
 public:
  Table() : kernels_({}, {}), context_{&kernels_, 0} {}

  // The operation's kernels on arrays of their own.
  void add(const std::string& name, const Operation::Work& work) {
    const GpuCall call = gpu_call(work, context_);  // runs once, which makes what stays
    ASSERT_TRUE(call.run) << name;
    emulated::TrafficCounter counter(kCacheBytes);
    call.run(nullptr);
    Row row{name};
    row.least = std::visit(
        [](const auto& own) {
          if constexpr (HasLeast<std::decay_t<decltype(own)>>) return least(own);
          return 0.0;
        },
        work);
    ASSERT_GT(row.least, 0) << name;
    for (const emulated::KernelTraffic& kernel : counter.take()) {
      row.read += static_cast<double>(kernel.read_bytes);
      row.written += static_cast<double>(kernel.written_bytes);
    }
    rows_.push_back(row);
  }

  // All memory-bound operations of a pass.
  void add_pass(const Block& block, Pass pass) {
    for (const Operation& operation : block.pass(pass).operations) {
      const std::string name =
          fmt::format("{}{}", operation.name, pass == Pass::kForward ? "" : ", backward");
      if (memory_bound(operation.work)) add(name, operation.work);
    }
  }

  const std::vector<Row>& rows() const { return rows_; }
  double sum(double Row::*of) const {
    double out = 0;
    for (const Row& row : rows_) out += row.*of;
    return out;
  }
  double moved() const { return sum(&Row::read) + sum(&Row::written); }

 private:
  cuda::CudaKernels kernels_;
  GpuContext context_;
  std::vector<Row> rows_;
};

constexpr double kTokens = 2048, kHidden = 128;

Scenario scenario(const std::string& model) {
  return testing::scenario_from(fmt::format(
      R"({{"stepcast": 1, "model": {{"layers": 1, "hidden": 128, "heads": 8, "vocab": 500,
          "max_positions": 512, "dropout": 0, {}}},
          "cluster": {{"base": "dgx-h100", "gpus": 1}},
          "training": {{"global_batch": 4, "sequence_length": 512, "framework": "native",
                        "grad_precision": "fp32"}},
          "layout": {{"micro_batch": 4}}}})",
      model));
}
Scenario llama() {
  return scenario(R"("kv_heads": 2, "ffn": 256, "mlp": "swiglu", "norm": "rmsnorm",
                     "position": "rope", "biases": false, "tied_embeddings": false)");
}
Scenario gpt() {
  return scenario(R"("ffn": 512, "mlp": "gelu", "norm": "layernorm", "position": "learned",
                     "biases": true, "tied_embeddings": true)");
}

const Block& block_of(const Program& program, BlockKind kind) {
  for (const Block& block : program.blocks) {
    if (block.kind == kind) return block;
  }
  throw std::logic_error("a program has all kinds of blocks");
}

void add_layer(const Scenario& of, Table& table) {
  const Program program = lower(of);
  const Block& block = block_of(program, BlockKind::kLayer);
  table.add_pass(block, Pass::kForward);
  table.add_pass(block, Pass::kBackward);
}

std::string text_of(const Row& row) {
  return fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} | {:.3f} |", row.name, row.least / 1e6,
                     row.read / 1e6, row.written / 1e6, row.ratio());
}

void expect_near_least(const Table& table) {
  for (const Row& row : table.rows()) {
    EXPECT_LE(row.ratio(), kLimit) << row.name;
    EXPECT_GE(row.ratio(), 0.999) << row.name << " counts too little";
  }
}

std::string page() {
  std::ifstream file(source_folder() + "/docs/cuda-kernels.md");
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

// The page shows what is counted.
void expect_on_page(const Table& table) {
  static const std::string kPage = page();
  for (const Row& row : table.rows()) {
    const std::string text = text_of(row);
    EXPECT_TRUE(kPage.find(text) != std::string::npos) << "docs/cuda-kernels.md lacks " << text;
  }
}

// Numbers per token that pass between kernels, in bytes of bf16.
double chains(double numbers) { return kTokens * numbers * kHalf; }

TEST(LayerTraffic, ALlamaLayerMovesTheLeastThatFusionAllows) {
  Table table;
  add_layer(llama(), table);
  expect_near_least(table);
  expect_on_page(table);
  // Chains: input -> norm; queries and keys -> rotation; branch and input -> sum and norm; gate and
  // linear half -> product; branch and sum -> output. Backward: both halves and the gradient of the
  // product -> of the halves; twice a norm with the stream; queries and keys.
  const double h = kHidden, ffn = 256, turned = h + h / 4;
  const double forward = 2 * h + 2 * turned + 4 * h + 3 * ffn + 3 * h;
  const double backward = 5 * ffn + 4 * h + 2 * turned + 4 * h;
  EXPECT_EQ(table.rows().size(), 9U);
  EXPECT_LE(table.moved(), kLimit * chains(forward + backward));
}

TEST(LayerTraffic, AGptLayerMovesTheLeastThatFusionAllows) {
  Table table;
  add_layer(gpt(), table);
  expect_near_least(table);
  expect_on_page(table);
  // Chains are those above, with GELU and its bias, without rotation. Backward adds the biases of
  // both outputs and of the packed projection: that behind the MLP is the layer's own output
  // gradient, that of the projection comes from attention. That behind attention could be summed
  // where its gradient is written, in the norm's backward; it is read once more.
  const double h = kHidden, ffn = 512;
  const double forward = 2 * h + 4 * h + 2 * ffn + 3 * h;
  const double backward = h + 3 * ffn + 4 * h + 3 * h + 4 * h;
  EXPECT_EQ(table.rows().size(), 10U);
  EXPECT_LE(table.moved(), kLimit * chains(forward + backward));
}

TEST(LayerTraffic, LossAndOptimizerMoveTheLeast) {
  const Program program = lower(llama());
  Table table;
  const Block& head = block_of(program, BlockKind::kHead);
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (const Operation& operation : head.pass(pass).operations) {
      if (std::holds_alternative<Cast>(operation.work)) ADD_FAILURE() << "the loss needs no cast";
    }
    table.add_pass(head, pass);
  }
  table.add_pass(block_of(program, BlockKind::kGradientNorm), Pass::kForward);
  table.add_pass(block_of(program, BlockKind::kUpdate), Pass::kForward);
  constexpr std::int64_t kCount = 1 << 20;
  table.add("cast of gradients", Cast{CastSubject::kGradients,
                                      true,
                                      DataType::kBf16,
                                      DataType::kFp32,
                                      {kCount, 0, 6.0 * kCount}});
  expect_near_least(table);
  expect_on_page(table);
  // The norm of all gradients must be known before the first is used.
  EXPECT_EQ(table.rows().size(), 7U);
}

// A layer of experts of 512 tokens with 1024 hidden, dropout, and casts before products of fp8.
TEST(LayerTraffic, ExpertsDropoutAndCastsMoveTheLeast) {
  constexpr std::int64_t kFew = 512, kExperts = 64, kTopK = 4, kWidth = 1024, kRows = kFew * kTopK;
  constexpr DataType kType = DataType::kBf16;
  const double moved = kHalf * (kFew + kRows) * kWidth;
  const KernelSize scores{kFew * kExperts, kExperts, 9.0 * kFew * kExperts},
      tokens{kFew * kWidth, kWidth, moved}, rows{kRows * kWidth, kWidth, moved};
  Table table;
  table.add("router_scores", RouterScores{false, kTopK, DataType::kFp32, scores});
  table.add("router_scores, backward", RouterScores{true, kTopK, DataType::kFp32, scores});
  table.add("permute", TokenPermutation{TokenMove::kPermute, false, kType, rows});
  table.add("unpermute", TokenPermutation{TokenMove::kUnpermute, false, kType, tokens});
  for (const bool backward : {false, true}) {
    const KernelSize ups{kRows * 512, 512, (backward ? 10.0 : 6.0) * kRows * 512};
    table.add(backward ? "experts_activation, backward" : "experts_activation",
              ExpertActivation{Mlp::kSwiglu, backward, kType, ups});
    table.add(backward ? "dropout, backward" : "dropout",
              Dropout{backward, kType, {kFew * kWidth, kWidth, 5.0 * kFew * kWidth}});
  }
  table.add("dropout and residual",
            ResidualAdd{false, true, true, kType, {kFew * kWidth, kWidth, 7.0 * kFew * kWidth}});
  constexpr double kCast = kFew * kWidth;
  table.add(
      "largest element",
      Cast{CastSubject::kScale, false, kType, DataType::kFp32, {kFew * kWidth, 0, 2 * kCast, 2}});
  table.add(
      "cast to fp8, both copies",
      Cast{CastSubject::kOperand, false, kType, DataType::kFp8, {kFew * kWidth, 0, 4 * kCast, 2}});
  expect_near_least(table);
  expect_on_page(table);
}

// The program knows what it cannot ask the kernels.
TEST(ExecutorWorkspace, IsWhatOwnAttentionTakes) {
  for (const std::int64_t sequence : {512, 8192, 20000}) {
    for (const std::int64_t head_dim : {64, 256}) {
      const Attention attention{true,           3, 12, 2, sequence, sequence, head_dim, true,
                                DataType::kBf16};
      const AttentionShape shape{3, 12, 2, sequence, head_dim, true};
      EXPECT_EQ(attention_workspace(attention, AttentionBy::kOwnKernels),
                4 * cuda::attention_key_sums<cuda::Bf16>(shape));
    }
  }
}

TEST(ExecutorWorkspace, HasRoomForTheProductsOfAGpu) {
  EXPECT_EQ(executor_workspace(Program{}, Role{}, AttentionBy::kOwnKernels),
            static_cast<ByteCount>(cuda::GemmSettings{}.workspace_bytes));
}

// A kernel whose traffic is known shows what the counter is worth.
TEST(TrafficCounter, CountsBytesOnce) {
  constexpr std::int64_t kCount = 1 << 16;
  const cuda::DeviceArray<float> from(std::vector<float>(kCount, 1.0F)), to(kCount);
  emulated::TrafficCounter counter(kCacheBytes);
  cuda::add(from.data(), from.data(), to.data(), kCount, nullptr);  // reads one array twice
  cuda::cast(from.data() + 1, to.data(), kCount - 1, nullptr);      // element by element
  const auto kernels = counter.take();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "add");
  EXPECT_EQ(kernels[0].read_bytes, 4 * kCount);
  EXPECT_EQ(kernels[0].written_bytes, 4 * kCount);
  EXPECT_EQ(kernels[0].asked_bytes, 12 * kCount);
  EXPECT_EQ(kernels[1].read_bytes, 4 * kCount);  // whole sectors
  EXPECT_EQ(kernels[1].written_bytes, 4 * kCount);
  EXPECT_EQ(kernels[1].asked_bytes, 8 * (kCount - 1));
}

// A norm walks over its row twice, and over its weights once for each row.
TEST(TrafficCounter, CountsAgainWhatTheCacheHasLost) {
  constexpr std::int64_t kRows = 8, kWidth = 4096, kRowBytes = 4 * kWidth;
  const cuda::DeviceArray<float> x(std::vector<float>(kRows * kWidth, 1.0F)), y(kRows * kWidth);
  const cuda::DeviceArray<float> weight(std::vector<float>(kWidth, 1.0F));
  const auto read_with = [&](std::int64_t cache_bytes) {
    emulated::TrafficCounter counter(cache_bytes);
    cuda::norm<float>(NormKind::kRms, x.data(), weight.data(), nullptr, y.data(), kRows, kWidth,
                      kWidth, kWidth, nullptr);
    return counter.take().at(0).read_bytes;
  };
  EXPECT_EQ(read_with(4 * kRowBytes), (kRows + 1) * kRowBytes);
  // All but what little the end of one walk leaves for the next.
  EXPECT_NEAR(static_cast<double>(read_with(kRowBytes / 4)) / (kRows * 3 * kRowBytes), 1, 0.01);
}

}  // namespace
}  // namespace stepcast
