// SPDX-License-Identifier: Apache-2.0
#include "economics/failure_process.h"

#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

namespace stepcast {
namespace {

// Integral of e^(-rate t) from 0 to `end`.
double exponential_integral(double rate, double end) {
  return rate * end > 0 ? -std::expm1(-rate * end) / rate : end;
}

// Integral of t e^(-rate t) from 0 to `end`; its series where the closed form would cancel.
double exponential_moment(double rate, double end) {
  const double x = rate * end;
  if (x < 1e-4) return end * end * (1.0 / 2 - x / 3 + x * x / 8);
  return (-std::expm1(-x) - x * std::exp(-x)) / (rate * rate);
}

// A restart of `length` that begins anew at each interruption: first and second moment of the time
// until it is through.
struct RestartMoments {
  double first, second;
};

RestartMoments restart_moments(double rate, double length) {
  if (!(rate > 0)) return {length, length * length};
  const double first = std::expm1(rate * length) / rate;
  const double through = std::exp(-rate * length);
  // E[X; X < length] and E[X^2; X < length] of the time X to an interruption.
  const double mean = rate * exponential_moment(rate, length);
  const double square = 2 / rate * mean - length * length * through;
  return {first, length * length + (square + 2 * mean * first) / through};
}

// One renewal: from a saved state to the next one, or back to it.
struct Cycle {
  double failures, preemptions, rate;  // per second
  double delta, tau, length;           // checkpoint, training, both
  RestartMoments restart;
  double through;  // probability of no interruption

  Cycle(const FailureProcess& process, Seconds interval)
      : failures(process.failures.value()),
        preemptions(process.preemptions.value()),
        rate(failures + preemptions),
        delta(process.checkpoint.value()),
        tau(interval.value()),
        length(tau + delta),
        restart(restart_moments(rate, process.restart.value())),
        through(std::exp(-rate * length)) {}

  double up() const { return exponential_integral(rate, length); }  // mean time until it ends
  double useful() const {
    const double trained = exponential_moment(rate, tau);
    const double saving = up() - exponential_integral(rate, tau);
    return tau * through + preemptions * (trained + tau * saving);
  }
  double saving() const { return delta * (through + preemptions * up()); }
  double restarting() const { return rate * up() * restart.first; }
  // The work since the last checkpoint, which a failure loses. A preemption loses none of it,
  // because its warning leaves time for a checkpoint.
  double reworked() const { return failures * exponential_moment(rate, length); }
  double time() const { return useful() + saving() + restarting() + reworked(); }
};

}  // namespace

WallShares wall_shares(const FailureProcess& process, Seconds interval) {
  const Cycle cycle(process, interval);
  const double time = cycle.time();
  // The process is so unreliable that no restart ever completes.
  if (!std::isfinite(time)) return {.useful = 0, .restart = 1};
  return {.useful = cycle.useful() / time,
          .checkpoint = cycle.saving() / time,
          .rework = cycle.reworked() / time,
          .restart = cycle.restarting() / time};
}

Seconds goodput_scatter(const FailureProcess& process, Seconds interval) {
  const Cycle c(process, interval);
  const double time = c.time();
  if (!std::isfinite(time) || !(c.rate > 0)) return Seconds();
  const double goodput = c.useful() / time;
  // Second moment of useful - goodput x time over a cycle that an interruption ends at t, with the
  // restart behind it.
  const auto square = [&](double kept, double elapsed) {
    const double before = kept - goodput * elapsed;
    return before * before - 2 * before * goodput * c.restart.first +
           goodput * goodput * c.restart.second;
  };
  const auto at = [&](double t) {
    const double saved_at = t < c.tau ? t + c.delta : c.length;
    return std::exp(-c.rate * t) *
           (c.failures * square(0, t) + c.preemptions * square(std::min(t, c.tau), saved_at));
  };
  using Gauss = boost::math::quadrature::gauss<double, 15>;
  double sum = c.through * std::pow(c.tau - goodput * c.length, 2);
  sum += Gauss::integrate(at, 0.0, c.tau);
  if (c.delta > 0) sum += Gauss::integrate(at, c.tau, c.length);
  return Seconds(sum / time);
}

}  // namespace stepcast
