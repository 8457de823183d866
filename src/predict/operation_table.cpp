// SPDX-License-Identifier: Apache-2.0
#include "predict/operation_table.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "layout/scenario.h"
#include "predict/pricing.h"
#include "predict/run_costs.h"
#include "program/walk.h"

namespace stepcast {
namespace {

class TableBuilder {
 public:
  void add(const PricedOperation& priced, double calls) {
    const Operation& operation = *priced.operation;
    const bool communicates = std::holds_alternative<Collective>(operation.work);
    if (!communicates && !runs_kernel(operation.work)) return;
    const auto [found, fresh] =
        index_.try_emplace({signature(operation), operation.name, operation.phase}, table_.size());
    if (fresh) {
      OperationPrice& row = table_.emplace_back();
      row.signature = std::get<0>(found->first);
      row.name = operation.name;
      row.phase = operation.phase;
      const auto& shares = priced.cost.by_provenance;
      row.provenance =
          static_cast<Provenance>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    }
    OperationPrice& row = table_[found->second];
    row.calls_per_step += calls;
    row.total += priced.cost.gpu * calls;
  }

  std::vector<OperationPrice> table() { return std::move(table_); }

 private:
  std::map<std::tuple<std::string, std::string, Phase>, std::size_t> index_;
  std::vector<OperationPrice> table_;
};

}  // namespace

Result<std::vector<OperationPrice>> operation_table(const Scenario& scenario,
                                                    const DataFolders& folders, RankId rank,
                                                    bool own_kernels) {
  const auto pricing = make_pricing(scenario, folders, own_kernels);
  if (!pricing) return failure(pricing.error());
  const KernelCosts& kernels = (*pricing)->kernels;
  const CollectiveCosts& collectives = (*pricing)->collectives;
  const RankGrid grid(scenario.layout);
  const Program program = lower(scenario);
  const Traffic traffic = place_traffic(scenario, program, grid, collectives);
  const Symmetry symmetry = find_symmetry(scenario, grid, traffic, collectives, true);
  const RunCosts costs(scenario, program, grid, symmetry, kernels, collectives);
  const std::int32_t own = symmetry.class_of_rank[rank.index()];

  TableBuilder builder;
  for (const CountedRun& run : distinct_runs(costs.role(own))) {
    for (const RunCosts::PricedBlock* block : costs.blocks(own, *run.first)) {
      for (const PricedOperation& priced : block->operations) {
        builder.add(priced, static_cast<double>(run.times));
      }
    }
  }
  return builder.table();
}

}  // namespace stepcast
