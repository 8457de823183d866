// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/assert.h"

namespace stepcast {
namespace {

// Huber's loss: squares near zero, absolute values beyond `robust`.
double loss(double residual, double robust) {
  const double size = std::abs(residual);
  return size <= robust ? 0.5 * size * size : robust * (size - 0.5 * robust);
}

class Problem {
 public:
  Problem(const std::vector<FitParameter>& parameters, const Residuals& residuals, double robust)
      : parameters_(parameters), residuals_(residuals), robust_(robust) {}

  Eigen::VectorXd start() const {
    Eigen::VectorXd x(static_cast<Eigen::Index>(parameters_.size()));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      STEPCAST_ASSERT(parameters_[i].start > 0, "logarithms are fitted");
      x[static_cast<Eigen::Index>(i)] = std::log(parameters_[i].start);
    }
    return x;
  }

  Eigen::VectorXd clamp(Eigen::VectorXd x) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& value = x[static_cast<Eigen::Index>(i)];
      value = std::clamp(value, std::log(parameters_[i].low), std::log(parameters_[i].high));
    }
    return x;
  }

  std::vector<double> values(const Eigen::VectorXd& x) const {
    std::vector<double> out(parameters_.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::exp(x[static_cast<Eigen::Index>(i)]);
    return out;
  }

  // Data residuals, then one per prior.
  Eigen::VectorXd residuals(const Eigen::VectorXd& x) const {
    std::vector<double> all = residuals_(values(x));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      all.push_back(parameters_[i].prior *
                    (x[static_cast<Eigen::Index>(i)] - std::log(parameters_[i].start)));
    }
    return Eigen::Map<const Eigen::VectorXd>(all.data(), static_cast<Eigen::Index>(all.size()));
  }

  double cost(const Eigen::VectorXd& residuals) const {
    double sum = 0;
    for (const double residual : residuals) sum += loss(residual, robust_);
    return sum;
  }

  Eigen::VectorXd weights(const Eigen::VectorXd& residuals) const {
    return residuals.unaryExpr(
        [this](double r) { return std::abs(r) <= robust_ ? 1.0 : robust_ / std::abs(r); });
  }

 private:
  const std::vector<FitParameter>& parameters_;
  const Residuals& residuals_;
  double robust_;
};

Eigen::MatrixXd jacobian(const Problem& problem, const Eigen::VectorXd& x,
                         const Eigen::VectorXd& at_x, double step) {
  Eigen::MatrixXd out(at_x.size(), x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    Eigen::VectorXd moved = x;
    moved[i] += step;
    out.col(i) = (problem.residuals(moved) - at_x) / step;
  }
  return out;
}

}  // namespace

std::vector<double> fit_least_squares(const std::vector<FitParameter>& parameters,
                                      const Residuals& residuals,
                                      const LeastSquaresOptions& options) {
  STEPCAST_ASSERT(!parameters.empty(), "something must be free");
  const Problem problem(parameters, residuals, options.robust);
  Eigen::VectorXd x = problem.clamp(problem.start());
  Eigen::VectorXd r = problem.residuals(x);
  double cost = problem.cost(r), damping = 1e-2;
  for (int iteration = 0; iteration < options.iterations && damping < 1e8; ++iteration) {
    const Eigen::MatrixXd j = jacobian(problem, x, r, options.step);
    const Eigen::VectorXd weights = problem.weights(r);
    const Eigen::MatrixXd normal = j.transpose() * weights.asDiagonal() * j;
    const Eigen::VectorXd gradient = j.transpose() * weights.asDiagonal() * r;
    bool better = false;
    while (!better && damping < 1e8) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal().array() += damping * (normal.diagonal().array() + 1e-9);
      const Eigen::VectorXd next = problem.clamp(x - damped.ldlt().solve(gradient));
      const Eigen::VectorXd next_r = problem.residuals(next);
      const double next_cost = problem.cost(next_r);
      better = next_cost < cost * (1 - 1e-9);
      if (better) {
        x = next;
        r = next_r;
        cost = next_cost;
      }
      damping = better ? std::max(damping * 0.3, 1e-9) : damping * 4;
    }
  }
  return problem.values(x);
}

}  // namespace stepcast
