// SPDX-License-Identifier: Apache-2.0
// The CPU kernels on one core, in float: products and attention in flop/s, the others in bytes/s
// over what they must read and write once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "bench_main.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rotary.h"

namespace stepcast::cpu {
namespace {

std::vector<float> numbers(std::int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& value : out) value = normal(random);
  return out;
}

using Rate = benchmark::Counter;

void report_flops(benchmark::State& state, std::int64_t flops) {
  state.counters["flop_per_s"] =
      Rate(static_cast<double>(flops), Rate::kIsIterationInvariantRate, Rate::kIs1000);
}

void report_bytes(benchmark::State& state, std::int64_t elements, std::int64_t arrays) {
  state.counters["element_per_s"] =
      Rate(static_cast<double>(elements), Rate::kIsIterationInvariantRate, Rate::kIs1000);
  state.SetBytesProcessed(state.iterations() * elements * arrays * 4);
}

void BM_Gemm(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const std::vector<float> a = numbers(m * k);
  const std::vector<float> b = numbers(k * n);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  for (auto _ : state) {
    gemm<float>(m, n, k, {a.data(), k}, {b.data(), k, true}, {c.data(), n}, false);
    benchmark::ClobberMemory();
  }
  report_flops(state, 2 * m * n * k);
}
BENCHMARK(BM_Gemm)
    ->Args({128, 128, 64})
    ->Args({128, 64, 128})
    ->Args({256, 256, 256})
    ->Args({1024, 1024, 1024})
    ->Args({1024, 3072, 1024})
    ->Args({17, 333, 65});

struct AttentionData {
  explicit AttentionData(std::int64_t sequence)
      : shape{1, 8, 8, sequence, 64, true}, width(8 * 64), count(sequence * width) {}
  AttentionShape shape;
  std::int64_t width, count;
  std::vector<float> q = numbers(count), k = numbers(count), v = numbers(count);
  std::vector<float> up = numbers(count);
  std::vector<float> context = std::vector<float>(q.size());
  std::vector<float> log_sum_exp = std::vector<float>(q.size());
  std::vector<float> dq = context, dk = context, dv = context, workspace = context;

  void forward() {
    attention<float>(shape, {q.data(), width}, {k.data(), width}, {v.data(), width},
                     {context.data(), width}, log_sum_exp.data());
  }
  void backward() {
    attention_backward<float>(shape, {q.data(), width}, {k.data(), width}, {v.data(), width},
                              {context.data(), width}, log_sum_exp.data(), {up.data(), width},
                              {dq.data(), width}, {dk.data(), width}, {dv.data(), width},
                              workspace.data());
  }
  // The lower triangle of two products.
  std::int64_t forward_flops() const { return 2 * count * (shape.sequence + 1); }
};

void BM_Attention(benchmark::State& state) {
  AttentionData data(state.range(0));
  for (auto _ : state) {
    data.forward();
    benchmark::ClobberMemory();
  }
  report_flops(state, data.forward_flops());
}
BENCHMARK(BM_Attention)->Arg(256)->Arg(512)->Arg(1024)->Unit(benchmark::kMicrosecond);

void BM_AttentionBackward(benchmark::State& state) {
  AttentionData data(state.range(0));
  data.forward();
  for (auto _ : state) {
    data.backward();
    benchmark::ClobberMemory();
  }
  report_flops(state, data.forward_flops() * 5 / 2);
}
BENCHMARK(BM_AttentionBackward)->Arg(256)->Arg(512)->Arg(1024)->Unit(benchmark::kMicrosecond);

void BM_MaskedSoftmax(benchmark::State& state) {
  const AttentionShape shape{1, 4, 4, state.range(0), 64, false};
  const std::int64_t count = 4 * shape.sequence * shape.sequence;
  const std::vector<float> scores = numbers(count);
  std::vector<float> out(scores.size());
  for (auto _ : state) {
    masked_softmax(shape, scores.data(), out.data());
    benchmark::ClobberMemory();
  }
  report_bytes(state, count, 2);
}
BENCHMARK(BM_MaskedSoftmax)->Arg(1024);

// Rows of 1024: 64 of them stay in the second cache, 16,384 come from memory.
constexpr std::int64_t kWidth = 1024;

template <NormKind kKind>
void BM_Norm(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::vector<float> x = numbers(rows * kWidth), weight = numbers(kWidth);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    norm<float>(kKind, x.data(), weight.data(), nullptr, y.data(), rows, kWidth, kWidth, kWidth);
    benchmark::ClobberMemory();
  }
  report_bytes(state, rows * kWidth, 2);
}
BENCHMARK(BM_Norm<NormKind::kLayer>)->Arg(64)->Arg(16384);
BENCHMARK(BM_Norm<NormKind::kRms>)->Arg(64)->Arg(16384);

void BM_NormBackward(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::vector<float> x = numbers(rows * kWidth), weight = numbers(kWidth), dy = x;
  std::vector<float> dx(x.size()), weight_gradient(kWidth), bias_gradient(kWidth);
  for (auto _ : state) {
    norm_backward(NormKind::kLayer, x.data(), weight.data(), dy.data(), dx.data(),
                  weight_gradient.data(), bias_gradient.data(), false, rows, kWidth, kWidth,
                  kWidth);
    benchmark::ClobberMemory();
  }
  report_bytes(state, rows * kWidth, 3);
}
BENCHMARK(BM_NormBackward)->Arg(64)->Arg(16384);

template <ActivationKind kKind>
void BM_Activation(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::int64_t inputs = kKind == ActivationKind::kSwiglu ? 2 : 1;
  const std::vector<float> up = numbers(rows * inputs * kWidth);
  std::vector<float> out(static_cast<std::size_t>(rows * kWidth));
  for (auto _ : state) {
    activation<float>(kKind, up.data(), nullptr, out.data(), rows, kWidth);
    benchmark::ClobberMemory();
  }
  report_bytes(state, rows * kWidth, inputs + 1);
}
BENCHMARK(BM_Activation<ActivationKind::kGelu>)->Arg(64)->Arg(16384);
BENCHMARK(BM_Activation<ActivationKind::kSwiglu>)->Arg(64)->Arg(16384);

template <ActivationKind kKind>
void BM_ActivationBackward(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::int64_t inputs = kKind == ActivationKind::kSwiglu ? 2 : 1;
  const std::vector<float> up = numbers(rows * inputs * kWidth);
  const std::vector<float> dy = numbers(rows * kWidth);
  std::vector<float> dx(up.size());
  for (auto _ : state) {
    activation_backward<float>(kKind, up.data(), nullptr, dy.data(), dx.data(), rows, kWidth);
    benchmark::ClobberMemory();
  }
  report_bytes(state, rows * kWidth, 2 * inputs + 1);
}
BENCHMARK(BM_ActivationBackward<ActivationKind::kGelu>)->Arg(64)->Arg(16384);
BENCHMARK(BM_ActivationBackward<ActivationKind::kSwiglu>)->Arg(64)->Arg(16384);

void BM_CrossEntropy(benchmark::State& state) {
  const std::int64_t columns = state.range(0), rows = 64;
  const std::vector<float> logits = numbers(rows * columns);
  const std::vector<std::int64_t> targets(static_cast<std::size_t>(rows), 5);
  std::vector<float> largest(targets.size()), sum(targets.size()), target(targets.size());
  for (auto _ : state) {
    cross_entropy({0, columns, columns}, logits.data(), targets.data(), rows, largest.data(),
                  sum.data(), target.data());
    benchmark::ClobberMemory();
  }
  report_bytes(state, rows * columns, 1);
}
BENCHMARK(BM_CrossEntropy)->Arg(1000)->Arg(50304);

void BM_Rotary(benchmark::State& state) {
  const std::int64_t sequence = state.range(0), heads = 16, stride = heads * 64;
  std::vector<float> x = numbers(sequence * stride);
  for (auto _ : state) {
    rotary<float>(1, sequence, heads, 64, {x.data(), stride}, {x.data(), stride}, false);
    benchmark::ClobberMemory();
  }
  report_bytes(state, sequence * stride, 2);
}
BENCHMARK(BM_Rotary)->Arg(1024);

void BM_Add(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  const std::vector<float> a = numbers(count), b = a;
  std::vector<float> out(a.size());
  for (auto _ : state) {
    add(a.data(), b.data(), out.data(), count);
    benchmark::ClobberMemory();
  }
  report_bytes(state, count, 3);
}
BENCHMARK(BM_Add)->Arg(1 << 14)->Arg(1 << 24);

void BM_SumOfSquares(benchmark::State& state) {
  const std::vector<float> data = numbers(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(sum_of_squares(data.data(), state.range(0)));
  }
  report_bytes(state, state.range(0), 1);
}
BENCHMARK(BM_SumOfSquares)->Arg(1 << 14)->Arg(1 << 24);

void BM_AdamW(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  const std::vector<float> gradient = numbers(count);
  std::vector<float> weight = gradient, moment1(gradient.size()), moment2(gradient.size());
  std::int64_t step = 0;
  for (auto _ : state) {
    adamw<float>({}, ++step, gradient.data(), weight.data(), moment1.data(), moment2.data(), count);
    benchmark::ClobberMemory();
  }
  report_bytes(state, count, 7);
}
BENCHMARK(BM_AdamW)->Arg(1 << 14)->Arg(1 << 24);

}  // namespace
}  // namespace stepcast::cpu

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
