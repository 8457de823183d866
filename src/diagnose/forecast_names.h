// SPDX-License-Identifier: Apache-2.0
// Tells what stands behind the names in a forecast's timeline: a program's operations by name and
// phase, and the groups that its collectives join. Traces are set beside a forecast by these.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/kernel_family.h"
#include "layout/rank_grid.h"
#include "operation/collective_kind.h"
#include "operation/product.h"
#include "traces/profiler_trace.h"

namespace stepcast {

struct Scenario;

struct NamedMessage {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AxisGroup group;
  auto operator<=>(const NamedMessage&) const = default;
};

struct NamedOperation {
  KernelFamily family = KernelFamily::kMemoryBound;
  std::optional<Gemm> product = {};
  std::optional<NamedMessage> message = {};
};

class ForecastNames {
 public:
  explicit ForecastNames(const Scenario& scenario);

  // By the name of an operation or instruction and its phase's; null: the program has none.
  const NamedOperation* find(const std::string& name, const std::string& phase) const;
  // The collective of this program that a kernel of another trace was, by its kind and the ranks,
  // or the number, of its group.
  std::optional<NamedMessage> match(const TraceMessage& message, const std::string& kernel,
                                    RankId rank) const;
  // Names of the products of a shape, however it is turned: forward and both gradients are one.
  std::string products_of(const ProductShape& shape) const;
  // Whether a product has two dimensions of one of this program: weights, whatever the batch, of
  // which ranks or layers may have other parts.
  bool has_like(const ProductShape& shape) const;
  const RankGrid& grid() const { return grid_; }
  // Products of one micro-batch on the stage that has the fewest: a step has no fewer kernels.
  std::int64_t least_products() const { return least_products_; }

 private:
  using Turned = std::array<std::int64_t, 4>;
  static Turned turned(const ProductShape& shape);

  RankGrid grid_;
  std::map<std::pair<std::string, std::string>, NamedOperation> operations_;
  std::vector<NamedMessage> messages_;  // each once
  std::map<Turned, std::string> products_;
  std::int64_t least_products_ = 0;
};

// "all-gather over dp"
std::string words_of(const NamedMessage& message);

}  // namespace stepcast
