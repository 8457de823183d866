// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/affine_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace stepcast {
namespace {

std::vector<TimedSize> on_line(double latency_s, double bytes_per_s,
                               const std::vector<double>& sizes) {
  std::vector<TimedSize> out;
  for (const double size : sizes) {
    out.push_back({Bytes(size), Seconds(latency_s + size / bytes_per_s)});
  }
  return out;
}

const std::vector<double> kSizes = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8};

TEST(AffineFit, FindsAnExactLine) {
  const auto fit = fit_affine(on_line(20e-6, 5e9, kSizes));
  ASSERT_TRUE(fit) << to_string(fit.error());
  EXPECT_NEAR(fit->latency.value(), 20e-6, 1e-15);
  EXPECT_NEAR(1 / fit->seconds_per_byte, 5e9, 1);
  EXPECT_NEAR(fit->time(Bytes(5e6)).value(), 20e-6 + 1e-3, 1e-12);
  EXPECT_LT(fit->form.p90, 1e-9);
  EXPECT_LT(fit->held_out.p90, 1e-9);
  EXPECT_EQ(fit->largest_fall, 0);
}

TEST(AffineFit, ShortMessagesCountAsMuchAsLongOnes) {
  // 2 % of noise. Absolute weights would leave the latency to the longest message: 2 % of 20 ms is
  // 20 times the latency itself. By relative ones its error is that of the three short times.
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(0, 0.02);
  auto points = on_line(20e-6, 5e9, kSizes);
  for (TimedSize& point : points) point.time *= 1 + noise(random);
  const auto fit = fit_affine(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->latency.value(), 20e-6, 1e-6);
  EXPECT_NEAR(1 / fit->seconds_per_byte, 5e9, 0.2e9);
  EXPECT_GT(fit->held_out.median, 0);
  EXPECT_GE(fit->held_out.p90, fit->form.p90 * 0.999);  // leaving a point out helps no line
}

TEST(AffineFit, AHeldOutErrorIsOfTheLineThroughTheOthers) {
  // Two points fix a line exactly. Without x = 1: 3 + x, 4/3 - 1 = 1/3 off; without 2: 1.5 + 1.5 x,
  // 4.5/5 - 1 = -1/10; without 3: 1 + 2 x, 7/6 - 1 = 1/6. The 90 % quantile of the three sizes is
  // four fifths of the way from 1/6 to 1/3.
  const auto fit =
      fit_affine({{Bytes(1), Seconds(3)}, {Bytes(2), Seconds(5)}, {Bytes(3), Seconds(6)}});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->held_out.median, 1.0 / 6, 1e-9);
  EXPECT_NEAR(fit->held_out.bias, 1.0 / 6, 1e-9);
  EXPECT_NEAR(fit->held_out.p90, 0.3, 1e-9);
  EXPECT_LT(fit->form.p90, 0.3);
}

TEST(AffineFit, NoTermIsNegative) {
  // t = x^2: the best line has a negative latency. Through the origin, minimising
  // sum (b x/t - 1)^2 = sum (b/x - 1)^2 gives b = sum(1/x) / sum(1/x^2) = (11/6)/(49/36) = 66/49.
  const auto steep =
      fit_affine({{Bytes(1), Seconds(1)}, {Bytes(2), Seconds(4)}, {Bytes(3), Seconds(9)}});
  ASSERT_TRUE(steep);
  EXPECT_EQ(steep->latency.value(), 0);
  EXPECT_NEAR(steep->seconds_per_byte, 66.0 / 49, 1e-12);
  // Falling times: a constant, a = sum(1/t) / sum(1/t^2) = (11/6)/(49/36).
  const auto falling =
      fit_affine({{Bytes(1), Seconds(3)}, {Bytes(2), Seconds(2)}, {Bytes(3), Seconds(1)}});
  ASSERT_TRUE(falling);
  EXPECT_EQ(falling->seconds_per_byte, 0);
  EXPECT_NEAR(falling->latency.value(), 66.0 / 49, 1e-12);
}

TEST(AffineFit, AFallOfTheTimesIsReported) {
  auto points = on_line(10e-6, 1e9, {1e3, 1e4, 1e5});
  points[1].time = Seconds(5.5e-6);  // half of what 1 kB takes (11 us)
  const auto fit = fit_affine(points);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->largest_fall, 0.5, 1e-9);
}

TEST(AffineFit, TheOrderOfThePointsDoesNotMatter) {
  auto points = on_line(10e-6, 1e9, {1e5, 1e3, 1e4, 1e6});
  points[0].time *= 1.1;
  const auto one = fit_affine(points);
  std::reverse(points.begin(), points.end());
  const auto other = fit_affine(points);
  EXPECT_EQ(one->latency, other->latency);
  EXPECT_EQ(one->held_out.p90, other->held_out.p90);
}

TEST(AffineFit, WhatMakesNoLineIsAnError) {
  EXPECT_EQ(to_string(fit_affine(on_line(1, 1, {1, 2})).error().front()),
            "2 sizes do not make a line (measure 3 or more)");
  EXPECT_EQ(to_string(fit_affine(on_line(1, 1, {8, 8, 8})).error().front()),
            "all points are of 8 bytes (measure different sizes)");
  auto zero = on_line(1, 1, {1, 2, 3});
  zero[1].time = Seconds(0);
  EXPECT_EQ(to_string(fit_affine(zero).error().front()),
            "2 bytes in 0 s is no measurement (measure it again)");
}

}  // namespace
}  // namespace stepcast
