// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/latent_rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/rotary.h"
#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

constexpr LatentShape kShape{2, 3, 2, 3, 4, 5};  // batch, sequence, heads, plain, rotary, value
constexpr std::int64_t kLatent = 6;              // columns before the rotary key

struct LatentCase {
  std::vector<double> query = numbers(kShape.tokens() * kShape.heads * kShape.key_width(), 1);
  std::vector<double> up = numbers(kShape.tokens() * kShape.heads * kShape.up_width(), 2);
  std::vector<double> latent = numbers(kShape.tokens() * (kLatent + kShape.rotary), 3);

  std::vector<double> key = zeros<double>(static_cast<std::int64_t>(query.size()));
  std::vector<double> value = zeros<double>(kShape.tokens() * kShape.heads * kShape.value);

  void run() {
    latent_rotary<double>(kShape, query.data(), up.data(),
                          {latent.data() + kLatent, kLatent + kShape.rotary}, key.data(),
                          value.data());
  }
};

double turned(const double* part, std::int64_t position, std::int64_t i) {
  const std::int64_t half = kShape.rotary / 2, pair = i % half;
  const double angle =
      static_cast<double>(position) *
      std::pow(kRotaryBase, -static_cast<double>(pair) / static_cast<double>(half));
  const double a = part[pair], b = part[half + pair];
  return i < half ? a * std::cos(angle) - b * std::sin(angle)
                  : b * std::cos(angle) + a * std::sin(angle);
}

TEST(LatentRotary, EqualsItsFormula) {
  const LatentCase before;
  LatentCase c;
  c.run();
  for (std::int64_t token = 0; token < kShape.tokens(); ++token) {
    const std::int64_t position = token % kShape.sequence;
    const double* shared = before.latent.data() + token * (kLatent + kShape.rotary) + kLatent;
    for (std::int64_t h = 0; h < kShape.heads; ++h) {
      const std::int64_t head = token * kShape.heads + h;
      const double* query = before.query.data() + head * kShape.key_width();
      const double* up = before.up.data() + head * kShape.up_width();
      for (std::int64_t i = 0; i < kShape.key_width(); ++i) {
        const auto at = static_cast<std::size_t>(head * kShape.key_width() + i);
        const std::int64_t r = i - kShape.plain;
        EXPECT_NEAR(c.query[at], r < 0 ? query[i] : turned(query + kShape.plain, position, r),
                    1e-12);
        EXPECT_NEAR(c.key[at], r < 0 ? up[i] : turned(shared, position, r), 1e-12);
      }
      for (std::int64_t i = 0; i < kShape.value; ++i) {
        EXPECT_EQ(c.value[static_cast<std::size_t>(head * kShape.value + i)], up[kShape.plain + i]);
      }
    }
  }
}

// It is linear, so that the gradient is its transpose: <A x, y> = <x, A' y>.
TEST(LatentRotary, GradientIsItsTranspose) {
  const LatentCase before;
  LatentCase c;
  c.run();
  auto query = numbers(static_cast<std::int64_t>(c.query.size()), 4);
  const auto key = numbers(static_cast<std::int64_t>(c.key.size()), 5);
  const auto value = numbers(static_cast<std::int64_t>(c.value.size()), 6);
  const double expected = dot(c.query, query) + dot(c.key, key) + dot(c.value, value);
  auto up = zeros<double>(static_cast<std::int64_t>(c.up.size()));
  auto rotary = zeros<double>(kShape.tokens() * kShape.rotary);
  latent_rotary_backward<double>(kShape, query.data(), key.data(), value.data(), up.data(),
                                 rotary.data());
  double actual = dot(before.query, query) + dot(before.up, up);
  for (std::int64_t token = 0; token < kShape.tokens(); ++token) {
    for (std::int64_t i = 0; i < kShape.rotary; ++i) {
      actual +=
          before.latent[static_cast<std::size_t>(token * (kLatent + kShape.rotary) + kLatent + i)] *
          rotary[static_cast<std::size_t>(token * kShape.rotary + i)];
    }
  }
  EXPECT_NEAR(actual, expected, 1e-10);
}

}  // namespace
}  // namespace stepcast::cpu
