// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm.h"

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Gemm : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Gemm, NumberTypes, TypeNames);
class GemmOnDevice : public OnDevice {};

struct Product {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed, accumulate, bias;
  std::int64_t spare = 8;  // elements between the rows
  std::int64_t batch = 1;

  std::int64_t a_stride() const { return (a_transposed ? m : k) + spare; }
  std::int64_t b_stride() const { return (b_transposed ? k : n) + spare; }
  std::int64_t c_stride() const { return n + spare; }
  std::int64_t a_size() const { return (a_transposed ? k : m) * a_stride(); }
  std::int64_t b_size() const { return (b_transposed ? n : k) * b_stride(); }
  std::int64_t c_size() const { return m * c_stride(); }
};

template <typename C>
std::vector<double> on_cpu(const Product& p, const std::vector<double>& a,
                           const std::vector<double>& b, const std::vector<C>& before,
                           const std::vector<C>& bias) {
  auto out = widened(before);
  const auto offsets = widened(bias);
  for (std::int64_t i = 0; i < p.batch; ++i) {
    double* c = out.data() + i * p.c_size();
    cpu::gemm<double>(p.m, p.n, p.k, {a.data() + i * p.a_size(), p.a_stride(), p.a_transposed},
                      {b.data() + i * p.b_size(), p.b_stride(), p.b_transposed}, {c, p.c_stride()},
                      p.accumulate);
    for (std::int64_t row = 0; p.bias && row < p.m; ++row) {
      cpu::add_bias(c + row * p.c_stride(), offsets.data(), 1, p.n);
    }
  }
  return out;
}

// Operands are exact, sums are in fp32: with k terms of either sign, off by some sqrt(k) units.
// Some of cuBLASLt's kernels round the product to 16 bits before they add it to what was there.
template <typename T, typename C>
void expect_same_as_cpu(MatrixProducts& products, const Product& p, double operand_unit = 0) {
  SCOPED_TRACE(::testing::Message() << p.m << " x " << p.n << " x " << p.k << " " << p.a_transposed
                                    << p.b_transposed << p.accumulate << p.bias);
  const auto a = numbers_as<T>(p.batch * p.a_size(), 1), b = numbers_as<T>(p.batch * p.b_size(), 2);
  const auto before = numbers_as<C>(p.batch * p.c_size(), 3), bias = numbers_as<C>(p.n, 4);
  const DeviceArray<T> left(a), right(b);
  const DeviceArray<C> out(before), offsets(bias);
  products.gemm<T, C>(p.m, p.n, p.k, {left.data(), p.a_stride(), p.a_transposed},
                      {right.data(), p.b_stride(), p.b_transposed}, {out.data(), p.c_stride()},
                      p.accumulate, nullptr, p.bias ? offsets.data() : nullptr,
                      {p.batch, p.a_size(), p.b_size(), p.c_size()});
  expect_close(widened(out.on_host()), on_cpu(p, widened(a), widened(b), before, bias),
               (p.accumulate ? 2 : 1) * kSame<C> + 2 * operand_unit);
}

TYPED_TEST(Gemm, EqualsTheCpuInEveryForm) {
  using T = TypeParam;
  MatrixProducts products({.tf32 = false});
  for (int form = 0; form < 16; ++form) {
    const Product p{
        72, 136, 264, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0, (form & 8) != 0};
    expect_same_as_cpu<T, T>(products, p);
    expect_same_as_cpu<T, float>(products, p);
  }
}

TYPED_TEST(Gemm, OddSizesAndBatches) {
  using T = TypeParam;
  MatrixProducts products({.tf32 = false, .candidates = 1});
  for (int form = 0; form < 4; ++form) {
    Product p{33, 17, 65, (form & 1) != 0, (form & 2) != 0, true, false, 3};
    expect_same_as_cpu<T, T>(products, p);
    p.batch = 5;
    expect_same_as_cpu<T, T>(products, p);
  }
}

TYPED_TEST(Gemm, OfNothingSummedIsZeroOrWhatWasThere) {
  using T = TypeParam;
  MatrixProducts products;
  const auto before = numbers_as<T>(6, 1);
  const DeviceArray<T> c(before);
  products.gemm<T, T>(2, 2, 0, {nullptr, 0}, {nullptr, 2}, {c.data(), 3}, true, nullptr);
  EXPECT_EQ(widened(c.on_host()), widened(before));
  products.gemm<T, T>(2, 2, 0, {nullptr, 0}, {nullptr, 2}, {c.data(), 3}, false, nullptr);
  auto expected = widened(before);
  for (const std::size_t i : {0, 1, 3, 4}) expected[i] = 0;
  EXPECT_EQ(widened(c.on_host()), expected);
}

TEST_F(GemmOnDevice, Tf32RoundsTheOperands) {
  MatrixProducts products({.tf32 = true});
  expect_same_as_cpu<float, float>(products, {128, 64, 256, false, true, false, false}, 0x1p-11);
}

// Numbers of 8 bits are exact in both, of either format on the left; the sums of 256 products are
// off by what fp32 rounds, or with fast sums, which keep 14 bits of fraction on Hopper, by some
// 2^-13.
TEST_F(GemmOnDevice, Fp8TakesBothOperandsByRows) {
  constexpr std::int64_t kM = 64, kN = 128, kK = 256;
  MatrixProducts products;
  const auto numbers = [](std::int64_t count, unsigned seed, Fp8Format format) {
    const DeviceArray<float> wide(cpu::numbers<float>(count, seed));
    DeviceArray<Fp8> out(count);
    cast_to_fp8<float>(format, wide.data(), nullptr, nullptr, 1, count, out.data(), nullptr,
                       nullptr);
    return out;
  };
  const auto wide = [](const DeviceArray<Fp8>& narrow, Fp8Format format, double factor) {
    std::vector<double> out;
    for (const Fp8 number : narrow.on_host()) {
      out.push_back(factor * static_cast<double>(to_float(number, format)));
    }
    return out;
  };
  const DeviceArray<float> half(std::vector<float>{0.5F}), four(std::vector<float>{4});
  for (const bool fast : {false, true}) {
    const Fp8Format format = fast ? Fp8Format::kE4m3 : Fp8Format::kE5m2;
    const DeviceArray<Fp8> a = numbers(kM * kK, 1, format),
                           b = numbers(kN * kK, 2, Fp8Format::kE4m3);
    const auto wide_a = wide(a, format, 0.5), wide_b = wide(b, Fp8Format::kE4m3, 4);
    auto expected = zeros<double>(kM * kN);
    cpu::gemm<double>(kM, kN, kK, {wide_a.data(), kK, false}, {wide_b.data(), kK, true},
                      {expected.data(), kN}, false);
    const DeviceArray<float> out(kM * kN);
    try {
      products.gemm<Fp8, float>(kM, kN, kK, {a.data(), kK}, {b.data(), kK, true}, {out.data(), kN},
                                false, nullptr, nullptr, {}, {.fast_sums = fast},
                                {{format, half.data()}, {Fp8Format::kE4m3, four.data()}});
    } catch (const CudaError& error) {
      GTEST_SKIP() << "this GPU multiplies no fp8: " << error.what();
    }
    expect_close(out.on_host(), expected, fast ? 0x1p-9 : 1e-5);
  }
}

TEST(GemmWithoutGpu, TheErrorSaysSo) {
  const auto why = why_no_gpu();
  if (!why) GTEST_SKIP() << "there is a GPU";
  try {
    const MatrixProducts products;
    ADD_FAILURE() << "no error";
  } catch (const CudaError& error) {
    EXPECT_EQ(std::string(error.what()), "cublasLtCreate: " + *why);
  }
}

}  // namespace
}  // namespace stepcast::cuda
