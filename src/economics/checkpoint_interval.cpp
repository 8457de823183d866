// SPDX-License-Identifier: Apache-2.0
#include "economics/checkpoint_interval.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

namespace stepcast {
namespace {

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

}  // namespace

Seconds young_interval(Seconds checkpoint, PerSecond interruptions) {
  if (!(interruptions.value() > 0)) return kNever;
  return Seconds(std::sqrt(2 * checkpoint.value() / interruptions.value()));
}

Seconds daly_interval(Seconds checkpoint, PerSecond interruptions) {
  if (!(interruptions.value() > 0)) return kNever;
  const double mean = 1 / interruptions.value();
  const double delta = checkpoint.value();
  if (delta >= 2 * mean) return Seconds(mean);
  const double ratio = delta / (2 * mean);
  return Seconds(std::sqrt(2 * delta * mean) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - delta);
}

Seconds best_interval(const FailureProcess& process, Seconds shortest) {
  if (!(process.interruptions().value() > 0)) return kNever;
  const Seconds young = young_interval(process.checkpoint, process.interruptions());
  if (!(young.value() > 0)) return shortest;  // checkpoints are free
  // Goodput has one maximum; over the logarithm it is smooth and near Young's.
  const auto loss = [&](double logarithm) {
    return -wall_shares(process, Seconds(std::exp(logarithm))).useful;
  };
  constexpr double kReach = 7;  // a factor of 1000 either way
  constexpr int kBits = 20;     // beyond half of the mantissa a minimum is flat
  // Brent's method takes about twenty; a curve that is no number would have it go on for ever.
  std::uintmax_t rounds = 100;
  const double middle = std::log(young.value());
  const double found =
      boost::math::tools::brent_find_minima(loss, middle - kReach, middle + kReach, kBits, rounds)
          .first;
  return std::max(shortest, Seconds(std::exp(found)));
}

}  // namespace stepcast
