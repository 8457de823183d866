// SPDX-License-Identifier: Apache-2.0
// A job before its replay: its program, its traffic on the cluster, its classes and their prices.
// Jobs that run beside others on one fabric are placed and folded with these in mind.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/work_limits.h"
#include "layout/rank_grid.h"
#include "predict/simulation.h"

namespace stepcast {

struct Pricing;
struct PredictOptions;

class PlacedJob {
 public:
  // Refused where its program would not fit into this machine's memory.
  static Result<std::unique_ptr<PlacedJob>> make(const Scenario& scenario, const Pricing& pricing,
                                                 const PredictOptions& options);
  PlacedJob(const PlacedJob&) = delete;

  // Bytes/s on each link when all that it may send is under way, by LinkId.
  std::vector<double> demand() const;
  // `foreign`: what other jobs send. Passes whose collectives meet it load links of their own.
  void place(const std::vector<double>& foreign = {});
  void fold(const ForeignLinks& foreign = {});
  void price();  // input() is then there

  const Scenario& scenario() const { return scenario_; }
  const Pricing& pricing() const { return pricing_; }
  const RankGrid& grid() const { return grid_; }
  const Program& program() const { return program_; }
  const Symmetry& symmetry() const { return symmetry_; }
  const SimulationInput& input() const { return *input_; }

 private:
  PlacedJob(const Scenario& scenario, const Pricing& pricing, const PredictOptions& options,
            ByteCount held);
  Traffic placed() const;
  bool must_expand() const;

  const Scenario& scenario_;
  const Pricing& pricing_;
  const PredictOptions& options_;
  HeldMemory held_;
  RankGrid grid_;
  Program program_;
  Stamps stamps_;
  Traffic traffic_;
  Symmetry symmetry_;
  std::optional<RunCosts> costs_;
  std::unique_ptr<const SimulationInput> input_;
};

// Folds jobs that share links: where one sees two links alike, so do the others, or use neither.
void fold_together(const std::vector<PlacedJob*>& jobs);

}  // namespace stepcast
