// SPDX-License-Identifier: Apache-2.0
// Says what the executor runs of what the lowering knows, and how near its results must come.
#pragma once

#include <optional>

#include "core/data_type.h"
#include "core/result.h"

namespace stepcast {

struct Scenario;

enum class Backend { kCpu, kCuda };
constexpr const char* name_of(Backend backend) {
  return backend == Backend::kCuda ? "cuda" : "cpu";
}

// Names the key and the value that the backend does accept.
Errors check_executable(const Scenario& scenario, Backend backend = Backend::kCpu);

// fp32 sums in another order: largest relative error of losses and parameters against one rank.
inline constexpr double kNumericsLimit = 1e-5;

// Largest relative errors against one rank that computes in fp32.
struct NumericsLimits {
  double loss = kNumericsLimit;                       // of any step
  std::optional<double> parameters = kNumericsLimit;  // after the last; nothing: not compared
};

// In bf16 only the loss is compared. A residual stream is rounded twice a layer, each time by an
// error that is uniform up to 2^-9 of itself. Errors of random sign add up to 2^-9 / sqrt(3) *
// sqrt(2 layers): 1 % of an activation after 40 layers, and less of the mean loss of many tokens.
// Parameters say nothing in bf16: Adam's first updates are the sign of the gradient, and where
// rounding turns the sign of a small gradient, the parameter is two whole updates away. Products in
// fp8 round coarser, each sum of them by errors of random sign; the loss has the same limit.
NumericsLimits numerics_limits(DataType precision);

}  // namespace stepcast
