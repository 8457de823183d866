// SPDX-License-Identifier: Apache-2.0
#include "report/html/memory_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/prediction.h"
#include "report/html/legend.h"
#include "report/html/time_axis.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

constexpr double kChartHeight = 96, kTimeAxisHeight = 20;
constexpr std::size_t kMostColumns = 240, kLeastColumns = 60;
constexpr std::size_t kColumnsOfAll = 2400;

using Columns = std::vector<MemoryParts>;

// Memory that is allocated from a sample on holds until the next.
Columns columns_of(const MemoryChart& chart, std::size_t count) {
  Columns out(count);
  MemoryParts now{};
  std::size_t next = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const Seconds end = chart.length * (static_cast<double>(k + 1) / static_cast<double>(count));
    out[k] = now;
    for (; next < chart.samples.size() && chart.samples[next]->at < end; ++next) {
      now = chart.samples[next]->parts;
      if (total(now) > total(out[k]) || next == 0) out[k] = now;
    }
  }
  return out;
}

// The area between the sums of the categories below and up to `category`, as steps.
std::string area(const Columns& columns, std::size_t category, double top) {
  const auto level = [&](std::size_t k, std::size_t categories) {
    ByteCount sum = 0;
    for (std::size_t i = 0; i < categories; ++i) sum += columns[k][i];
    return coordinate(1000 - 1000 * static_cast<double>(sum) / top);
  };
  std::string upper, lower;
  for (std::size_t k = 0; k < columns.size();) {
    std::size_t end = k + 1;
    const std::string y = level(k, category + 1), base = level(k, category);
    while (end < columns.size() && level(end, category + 1) == y && level(end, category) == base) {
      ++end;
    }
    upper += fmt::format("V{}H{}", y, end);
    lower.insert(0, fmt::format("V{}H{}", base, k));
    k = end;
  }
  return fmt::format("M0 1000{}{}z", upper, lower);
}

}  // namespace

Html memory_chart(const MemoryChart& chart, std::size_t charts) {
  const std::size_t count =
      std::clamp(kColumnsOfAll / std::max<std::size_t>(charts, 1), kLeastColumns, kMostColumns);
  const Columns columns = columns_of(chart, count);
  const auto top = static_cast<double>(std::max<ByteCount>(chart.top, 1));
  Html areas;
  ByteCount peak = 0;
  for (const MemoryParts& parts : columns) peak = std::max(peak, total(parts));
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const bool some = std::any_of(columns.begin(), columns.end(),
                                  [&](const MemoryParts& parts) { return parts[i] != 0; });
    if (!some) continue;
    const auto category = static_cast<MemoryCategory>(i);
    areas += element("path", {{"class", css_class_of(category)}, {"d", area(columns, i, top)}},
                     element("title", {}, name_of(category)));
  }
  const Html stretched = element("svg",
                                 {{"x", "0"},
                                  {"y", "0"},
                                  {"width", "100%"},
                                  {"height", coordinate(kChartHeight)},
                                  {"viewBox", fmt::format("0 0 {} 1000", count)},
                                  {"preserveAspectRatio", "none"}},
                                 areas);
  const std::string label = fmt::format("{}: at most {} GiB", chart.title, gib_text(peak));
  const Html drawing = element("svg",
                               {{"width", "100%"},
                                {"height", coordinate(kChartHeight + kTimeAxisHeight)},
                                {"role", "img"},
                                {"aria-label", label}},
                               stretched + TimeAxis(chart.length.value()).ticks(kChartHeight));
  return element("figure", {}, element("figcaption", {}, label) + drawing);
}

}  // namespace stepcast::html
