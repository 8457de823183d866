// SPDX-License-Identifier: Apache-2.0
// Order statistics and rank correlation.
#pragma once

#include <vector>

namespace stepcast {

double mean(const std::vector<double>& values);         // 0 when empty
double median(std::vector<double> values);              // 0 when empty
double quantile(std::vector<double> values, double q);  // linear between order statistics

// Kendall's tau-b of two equally long series; 1 = same order. Ties count in neither direction.
double kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace stepcast
