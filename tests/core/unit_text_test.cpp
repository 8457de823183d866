// SPDX-License-Identifier: Apache-2.0
#include "core/unit_text.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

TEST(ParseCount, TakesPowersOfAThousandAndPlainNumbers) {
  EXPECT_EQ(parse_count("2T"), 2e12);
  EXPECT_EQ(parse_count("1.5 B"), 1.5e9);
  EXPECT_EQ(parse_count("300M"), 3e8);
  EXPECT_EQ(parse_count("500k"), 5e5);
  EXPECT_EQ(parse_count("1e12"), 1e12);
  EXPECT_EQ(parse_count("7"), 7);
}

TEST(ParseCount, RefusesOtherLettersAndNoNumber) {
  for (const char* text : {"2X", "T", "", "2TT", "two", "inf", "nan"}) {
    const auto count = parse_count(text);
    ASSERT_FALSE(count.has_value()) << text;
    EXPECT_EQ(count.error().front().code, ErrorCode::kBadUnit);
  }
}

TEST(ParseCount, TakesTheLettersInEitherCase) {
  EXPECT_EQ(parse_count("2t"), 2e12);
  EXPECT_EQ(parse_count("1.5b"), 1.5e9);
  EXPECT_EQ(parse_count("300m"), 3e8);
  EXPECT_EQ(parse_count("500K"), 5e5);
}

TEST(ParseRate, TakesWhatDataSheetsOfNetworksSay) {
  for (const char* text : {"400 Gb/s", "400 Gbps", "400Gbps", "400 Gbit/s", "50 GB/s", "50 GBps"}) {
    const auto rate = parse_rate(text);
    ASSERT_TRUE(rate) << text;
    EXPECT_EQ(rate->value(), 50e9) << text;
  }
  EXPECT_FALSE(parse_rate("400 gb"));
}

TEST(ParseDollars, MayHaveTheSignBeforeIt) {
  EXPECT_EQ(parse_dollars("$500k"), 5e5);
  EXPECT_EQ(parse_dollars("2.5"), 2.5);
  EXPECT_EQ(parse_dollars("$16,400"), 16400);
  EXPECT_EQ(parse_dollars("$1,234,567.5"), 1234567.5);
  EXPECT_EQ(parse_count("5,000k"), 5e6);
  for (const char* text : {"16,40", "1,2345", "1234,567", ",500", "1,", "1,,000", "1,000,"}) {
    EXPECT_FALSE(parse_dollars(text)) << text;
  }
  for (const char* text : {"$", "$$5", "5$", "$five"}) EXPECT_FALSE(parse_dollars(text)) << text;
}

TEST(ParseFraction, ReadsANumberOrPercent) {
  EXPECT_EQ(parse_fraction("0.05"), 0.05);
  EXPECT_EQ(parse_fraction("5%"), 0.05);
  EXPECT_EQ(parse_fraction("-1"), -1);
  for (const char* text : {"", "%", "5%%", "5 %", "inf", "nan", "half"}) {
    EXPECT_FALSE(parse_fraction(text)) << text;
  }
}

TEST(ParseSeconds, ReadsDeadlines) {
  EXPECT_EQ(parse_seconds("30days"), Seconds(30 * 86400));
  EXPECT_EQ(parse_seconds("1 day"), Seconds(86400));
  EXPECT_EQ(parse_seconds("2 weeks"), Seconds(14 * 86400));
  EXPECT_EQ(parse_seconds("12hours"), Seconds(12 * 3600));
  EXPECT_EQ(parse_seconds("30d"), Seconds(30 * 86400));
  EXPECT_FALSE(parse_seconds("30").has_value());  // only counts go without a unit
}

}  // namespace
}  // namespace stepcast
