// SPDX-License-Identifier: Apache-2.0
#include "report/html/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast::html {
namespace {

constexpr double kBin = 0.05;
constexpr int kBinsOfASide = 10;
constexpr int kBins = 2 * kBinsOfASide;
constexpr double kWidth = 760, kHeight = 240, kLeft = 40, kBottom = 40, kTop = 18;

int bin_of(double error) {
  return std::clamp(static_cast<int>(std::floor(error / kBin)) + kBinsOfASide, 0, kBins - 1);
}

// The lower edge of a bin.
std::string edge(int bin) {
  return bin == kBinsOfASide ? "0 %" : fmt::format("{:+d} %", 5 * (bin - kBinsOfASide));
}

std::string range_of(int bin) {
  if (bin == 0) return "below " + edge(1);
  if (bin == kBins - 1) return edge(bin) + " and more";
  return edge(bin) + " to " + edge(bin + 1);
}

}  // namespace

Html error_histogram(const std::vector<double>& errors, const std::string& label) {
  std::array<std::size_t, kBins> counts{};
  for (const double error : errors) ++counts[static_cast<std::size_t>(bin_of(error))];
  const double highest = static_cast<double>(
      std::max<std::size_t>(1, *std::max_element(counts.begin(), counts.end())));
  const double step = (kWidth - kLeft) / kBins;
  const double floor = kHeight - kBottom;
  Html marks;
  for (int bin = 0; bin < kBins; ++bin) {
    const auto count = counts[static_cast<std::size_t>(bin)];
    const double height = static_cast<double>(count) / highest * (floor - kTop);
    const double x = kLeft + bin * step;
    marks += element("rect",
                     {{"class", "mark-1"},
                      {"x", coordinate(x + 1)},
                      {"y", coordinate(floor - height)},
                      {"width", coordinate(step - 2)},
                      {"height", coordinate(height)}},
                     element("title", {}, fmt::format("{}: {} cases", range_of(bin), count)));
    if (count > 0) {
      marks += element("text",
                       {{"class", "soft middle"},
                        {"x", coordinate(x + step / 2)},
                        {"y", coordinate(floor - height - 4)}},
                       fmt::format("{}", count));
    }
    if (bin % 2 == 0) {
      marks += element(
          "text", {{"class", "soft middle"}, {"x", coordinate(x)}, {"y", coordinate(floor + 16)}},
          edge(bin));
    }
  }
  marks += element("line", {{"class", "axis"},
                            {"x1", coordinate(kLeft)},
                            {"x2", coordinate(kWidth)},
                            {"y1", coordinate(floor)},
                            {"y2", coordinate(floor)}});
  marks += element("text",
                   {{"class", "middle"},
                    {"x", coordinate(kLeft + kBinsOfASide * step)},
                    {"y", coordinate(kHeight - 6)}},
                   "predicted shorter than measured, or longer");
  const Html drawing = element("svg",
                               {{"class", "chart"},
                                {"viewBox", fmt::format("0 0 {} {}", kWidth, kHeight)},
                                {"role", "img"},
                                {"aria-label", label}},
                               marks);
  return element(
      "figure", {},
      element("div",
              {{"class", "scroll"}, {"tabindex", "0"}, {"role", "region"}, {"aria-label", label}},
              drawing));
}

}  // namespace stepcast::html
