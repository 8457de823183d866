// SPDX-License-Identifier: Apache-2.0
#include "economics/node_pool.h"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

constexpr std::int64_t kMostSpareNodes = 1 << 20;  // that a run may have

// Erlang B by its recursion in the number of servers, from that of `servers - 1`.
double next_loss(double load, double loss, std::int64_t servers) {
  return load * loss / (static_cast<double>(servers) + load * loss);
}

}  // namespace

double waiting_share(PerSecond losses, Seconds away, std::int64_t spares) {
  const double load = losses * away;
  double loss = load > 0 ? 1 : 0;
  for (std::int64_t servers = 1; servers <= spares + 1 && loss > 0; ++servers) {
    loss = next_loss(load, loss, servers);
  }
  return loss;
}

double reduced_share(PerSecond losses, Seconds away, std::int64_t spares, double lost_per_node) {
  const double load = losses * away;
  if (!(load > 0) || !(lost_per_node > 0)) return 0;
  // Beyond so many nodes nothing is left of the throughput, or no chance of them.
  const double last = static_cast<double>(spares) + std::ceil(1 / lost_per_node);
  const double likely = std::ceil(load + 12 * std::sqrt(load) + 30);
  double share = 0, above = 1;  // `above`: the chance of more nodes away than were counted
  for (double away_now = 0; away_now <= std::min(last, likely); ++away_now) {
    const double chance = std::exp(away_now * std::log(load) - load - std::lgamma(away_now + 1));
    const double missing = std::max(0.0, away_now - static_cast<double>(spares));
    share += chance * std::min(1.0, missing * lost_per_node);
    above -= chance;
  }
  return std::min(1.0, share + std::max(0.0, above));
}

std::int64_t spares_for(PerSecond losses, Seconds away, double share) {
  const double load = losses * away;
  double loss = load > 0 ? next_loss(load, 1, 1) : 0;
  std::int64_t spares = 0;
  while (loss > share && spares < kMostSpareNodes) loss = next_loss(load, loss, ++spares + 1);
  return spares;
}

double straggler_share(PerSecond arrivals, Seconds detection, double slowdown) {
  const double present = -std::expm1(-(arrivals * detection));
  return present * slowdown / (1 + slowdown);
}

}  // namespace stepcast
