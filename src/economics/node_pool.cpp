// SPDX-License-Identifier: Apache-2.0
#include "economics/node_pool.h"

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
