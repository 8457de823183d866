// SPDX-License-Identifier: Apache-2.0
#include "economics/run_forecast.h"

#include <algorithm>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "economics/checkpoint_interval.h"
#include "economics/node_pool.h"

namespace stepcast {
namespace {

constexpr double kCentral90 = 1.6449;  // standard deviations
constexpr double kHour = 3600;
constexpr double kWaitingAllowed = 0.01;
constexpr Seconds kUsualRun{30 * 86400.0};

void plan_checkpoints(const RunTerms& terms, const StepTime& step, RunForecast& out) {
  const FailureProcess& process = terms.hazards.process;
  const PerSecond rate = process.interruptions();
  out.interval = terms.checkpoint_interval;
  if (!(rate.value() > 0)) return;
  out.between_interruptions = Seconds(1 / rate.value());
  out.young = young_interval(process.checkpoint, rate);
  out.daly = daly_interval(process.checkpoint, rate);
  if (!out.interval) out.interval = best_interval(process, step.time);
}

// The value of a gamma distribution of scale 1 that lies where a normal one has `deviations`. Large
// shapes are nearly normal in the cube root (Wilson and Hilferty 1931), and a series for them would
// take too long.
double gamma_at(double shape, double deviations) {
  constexpr double kLarge = 1e3;
  if (shape > kLarge) {
    const double ninth = 1 / (9 * shape);
    return shape * std::pow(1 - ninth + deviations * std::sqrt(ninth), 3);
  }
  namespace policies = boost::math::policies;
  constexpr auto kNearest = policies::ignore_error;  // the nearest number, and no exception
  const policies::policy<policies::overflow_error<kNearest>, policies::evaluation_error<kNearest>>
      policy;
  const double chance = std::erfc(-deviations / std::sqrt(2.0)) / 2;
  return boost::math::gamma_p_inv(shape, chance, policy);
}

FigureRange goodput_of(const RunTerms& terms, const RunForecast& run, Seconds wall) {
  const double mean = run.shares.useful;
  FigureRange out{mean, mean, mean};
  if (!run.interval || !std::isfinite(wall.value()) || !(mean > 0)) return out;
  const FailureProcess& process = terms.hazards.process;
  const double of_process = wall_shares(process, *run.interval).useful;
  const double whole = mean / of_process;
  // Interruptions take a part of the wall time: near none in a short run, in which hardly
  // anything happens, and nearly normal in a long one; a gamma distribution with the mean and the
  // variance of the renewal process is both.
  const double undisturbed = *run.interval / (*run.interval + process.checkpoint);
  const double lost = undisturbed - of_process;
  const double variance = goodput_scatter(process, *run.interval) / wall;
  if (!(lost > 0) || !(variance > 0)) return out;
  const double shape = lost * lost / variance, scale = variance / lost;
  out.low = std::clamp(whole * (undisturbed - scale * gamma_at(shape, kCentral90)), 0.0, mean);
  out.high = std::clamp(whole * (undisturbed - scale * gamma_at(shape, -kCentral90)), mean, 1.0);
  return out;
}

// Errors of independent factors add up in their logarithms' squares.
double joined(double one, double other) {
  return std::exp(std::sqrt(std::pow(std::log(one), 2) + std::pow(std::log(other), 2)));
}

// The chance that a figure with this spread stays below `limit`; it is taken as log-normal on
// either side.
double chance_below(const FigureRange& spread, double limit) {
  if (!(limit > 0)) return 0;
  const double distance = std::log(limit / spread.value);
  const double reach =
      distance > 0 ? std::log(spread.high / spread.value) : std::log(spread.value / spread.low);
  if (!(reach > 0)) return distance >= 0 ? 1 : 0;
  return 0.5 * std::erfc(-distance / reach * kCentral90 / std::sqrt(2.0));
}

// Parts that are a share of training stretch with it.
void add_beside(const RunTerms& terms, RunLength& out) {
  const FigureRange training = out.wall_s;
  out.beside = times_beside(terms.beside, *terms.tokens, Seconds(training.value));
  for (const TimeBeside& part : out.beside) {
    const double shorter = part.is_fixed ? 1 : training.low / training.value;
    const double longer = part.is_fixed ? 1 : training.high / training.value;
    out.wall_s.value += part.wall.value();
    out.wall_s.low += shorter * part.wall.value();
    out.wall_s.high += longer * part.wall.value();
  }
}

RunLength length_of(const RunTerms& terms, const StepTime& step, const RunForecast& run) {
  const FigureRange& goodput = run.goodput;
  RunLength out;
  out.steps = std::ceil(*terms.tokens / terms.tokens_per_step);
  out.training = out.steps * step.time;
  out.wall_s.value = out.training.value() / goodput.value;
  out.wall_s.low = out.wall_s.value / joined(step.time / step.low, goodput.high / goodput.value);
  out.wall_s.high = out.wall_s.value * joined(step.high / step.time, goodput.value / goodput.low);
  out.interruptions =
      terms.hazards.process.interruptions() * Seconds(out.wall_s.value) * (1 - run.shares.waiting);
  add_beside(terms, out);
  const Seconds wall(out.wall_s.value);
  const double gpus_per_second = static_cast<double>(terms.rented_gpus) / kHour;
  const auto billed = [&](double seconds) { return std::max(seconds, terms.least_rental.value()); };
  out.gpu_hours = billed(out.wall_s.value) * gpus_per_second;
  out.least_billed = out.wall_s.value < terms.least_rental.value();
  if (terms.dollars_per_gpu_hour) {
    const double rate = gpus_per_second * *terms.dollars_per_gpu_hour;
    out.dollars = FigureRange{billed(out.wall_s.value) * rate, billed(out.wall_s.low) * rate,
                              billed(out.wall_s.high) * rate};
  }
  if (terms.power.value() > 0) out.energy = terms.power * wall;
  if (terms.deadline) {
    out.meets_deadline = wall <= *terms.deadline;
    out.deadline_chance = chance_below(out.wall_s, terms.deadline->value());
  }
  if (terms.budget && out.dollars) {
    out.within_budget = out.dollars->value <= *terms.budget;
    out.budget_chance = chance_below(*out.dollars, *terms.budget);
  }
  return out;
}

}  // namespace

RunForecast forecast_run(const RunTerms& terms, const StepTime& step) {
  RunForecast out;
  plan_checkpoints(terms, step, out);
  if (out.interval) out.shares = wall_shares(terms.hazards, *out.interval);
  out.spares_needed = spares_for(terms.hazards.node_losses, terms.hazards.away, kWaitingAllowed);
  // The run is so unreliable that no step counts. It has no end, and so no length and no price.
  if (!(out.shares.useful > 0)) return out;
  Seconds wall = kUsualRun;
  if (terms.tokens) {
    wall = std::ceil(*terms.tokens / terms.tokens_per_step) / out.shares.useful * step.time;
  }
  out.goodput = goodput_of(terms, out, wall);
  if (terms.dollars_per_gpu_hour) {
    const Seconds per_step = step.time / out.goodput.value;
    out.dollars_per_million_tokens = *terms.dollars_per_gpu_hour *
                                     static_cast<double>(terms.rented_gpus) * per_step.value() /
                                     kHour / terms.tokens_per_step * 1e6;
  }
  if (terms.tokens) out.length = length_of(terms, step, out);
  return out;
}

RunOutlook run_outlook(const Scenario& scenario, const PriceList& prices, const StepTime& step) {
  RunOutlook out{run_terms(scenario, prices), {}};
  out.forecast = forecast_run(out.terms, step);
  return out;
}

}  // namespace stepcast
