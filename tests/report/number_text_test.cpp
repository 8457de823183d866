// SPDX-License-Identifier: Apache-2.0
#include "report/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace stepcast {
namespace {

TEST(NumberText, KeepsFourSignificantDigits) {
  EXPECT_EQ(number_text(12.3456), "12.35");
  EXPECT_EQ(number_text(0.0042), "0.004200");
  EXPECT_EQ(number_text(999.94), "999.9");
  EXPECT_EQ(number_text(1234.4), "1234");
  EXPECT_EQ(number_text(118034), "118,000");
  EXPECT_EQ(number_text(-1234567), "-1,235,000");
  EXPECT_EQ(number_text(0), "0");
}

TEST(NumberText, NoChanceIsCertain) {
  EXPECT_EQ(chance_text(1), "above 99 %");
  EXPECT_EQ(chance_text(0.42), "42 %");
  EXPECT_EQ(chance_text(0), "below 1 %");
}

TEST(NumberText, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(fixed_text(-0.04, 1), "0.0");
  EXPECT_EQ(fixed_text(-0.06, 1), "-0.1");
  EXPECT_EQ(fixed_text(12.34, 1), "12.3");
}

TEST(NumberText, ParametersThatRoundUpTakeTheNextUnit) {
  EXPECT_EQ(parameters_text(999'885'952), "1.00 B");
  EXPECT_EQ(parameters_text(999'400'000), "999 M");
  EXPECT_EQ(parameters_text(70'553'706'496), "70.6 B");
}

TEST(NumberText, SaysNothingOfWhatIsNotFinite) {
  EXPECT_EQ(number_text(std::nan("")), "-");
  EXPECT_EQ(percent_text(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(exact_text(std::nan("")), "");
}

TEST(NumberText, ChoosesTheUnitOfATime) {
  EXPECT_EQ(time_text(Seconds(12.314)), "12.31 s");
  EXPECT_EQ(time_text(Seconds(0.843)), "843.0 ms");
  EXPECT_EQ(time_text(Seconds(5.2e-6)), "5.20 us");
  EXPECT_EQ(time_text(Seconds(1e-10)), "0.000100 us");
  EXPECT_EQ(time_text(Seconds(4.14e-13)), "0 s");  // below the clock's resolution
}

TEST(NumberText, ExactTextReadsBackToTheSameDouble) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-200, 200);
  for (int i = 0; i < 1000; ++i) {
    const double value = std::pow(10, exponent(random));
    EXPECT_EQ(std::stod(exact_text(value)), value);
  }
}

TEST(RanksText, JoinsNeighboursIntoRanges) {
  const auto ranks = [](std::initializer_list<int> ids) {
    std::vector<RankId> out;
    for (const int id : ids) out.push_back(RankId(std::int32_t{id}));
    return out;
  };
  EXPECT_EQ(ranks_text(ranks({})), "");
  EXPECT_EQ(ranks_text(ranks({5})), "5");
  EXPECT_EQ(ranks_text(ranks({64, 0, 1, 2, 65})), "0-2,64-65");
  EXPECT_EQ(ranks_text(ranks({0, 2, 4})), "0,2,4");
}

TEST(BarText, SpansItsShareOfTheWidth) {
  EXPECT_EQ(bar_text(0, 1, 3), "███");
  EXPECT_EQ(bar_text(0.5, 0.5, 4), "  ██");
  EXPECT_EQ(bar_text(0, 0, 4), "");
  EXPECT_EQ(bar_text(1, 0.001, 4), "   █");  // small is not nothing
  EXPECT_EQ(bar_text(0, 0.0004, 4), "");     // what reads "0.0 %" is
}

TEST(NumberText, WhatRoundsToZeroIsNotNegative) {
  EXPECT_EQ(percent_text(-0.0004), "0.0 %");
  EXPECT_EQ(percent_text(-0.0006), "-0.1 %");
  EXPECT_EQ(signed_percent_text(-0.0004), "0.0 %");
  EXPECT_EQ(signed_percent_text(-0.1), "-10.0 %");
}

TEST(NumberText, CountsOneInTheSingular) {
  EXPECT_EQ(counted_text(1, "GPU"), "1 GPU");
  EXPECT_EQ(counted_text(0, "GPU"), "0 GPUs");
  EXPECT_EQ(counted_text(8, "GPU"), "8 GPUs");
}

}  // namespace
}  // namespace stepcast
