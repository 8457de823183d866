// SPDX-License-Identifier: Apache-2.0
#include "core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/assert.h"

namespace stepcast {

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= values.size()) return values.back();
  const double fraction = position - static_cast<double>(below);
  return values[below] + fraction * (values[below + 1] - values[below]);
}

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  STEPCAST_ASSERT(a.size() == b.size(), "series of equal length");
  double concordant = 0, discordant = 0, tied_a = 0, tied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const double product = (a[i] - a[j]) * (b[i] - b[j]);
      if (product > 0) ++concordant;
      if (product < 0) ++discordant;
      if (a[i] == a[j] && b[i] != b[j]) ++tied_a;
      if (b[i] == b[j] && a[i] != a[j]) ++tied_b;
    }
  }
  const double all = concordant + discordant;
  const double scale = std::sqrt((all + tied_a) * (all + tied_b));
  return scale > 0 ? (concordant - discordant) / scale : 1.0;
}

}  // namespace stepcast
