// SPDX-License-Identifier: Apache-2.0
#include "predict/operation_table.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "operation/signature.h"
#include "predict/pricing.h"
#include "predict/run_costs.h"

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

  std::vector<OperationPrice> table() {
    for (OperationPrice& row : table_) row.call = row.total / row.calls_per_step;
    return std::move(table_);
  }

 private:
  std::map<std::tuple<std::string, std::string, Phase>, std::size_t> index_;
  std::vector<OperationPrice> table_;
};

// Runs of the same blocks of the same pass are the same operations.
using RunKey = std::tuple<Pass, std::int32_t, std::int32_t, std::int32_t>;

}  // namespace

Result<std::vector<OperationPrice>> operation_table(const Scenario& scenario,
                                                    const DataFolders& folders, RankId rank,
                                                    bool own_kernels) {
  const auto pricing = make_pricing(scenario, folders, own_kernels);
  if (!pricing) return failure(pricing.error());
  const auto& [kernels, collectives] = **pricing;
  const RankGrid grid(scenario.layout);
  const Program program = lower(scenario);
  const Traffic traffic = place_traffic(scenario, program, grid, collectives);
  const Symmetry symmetry = find_symmetry(scenario, grid, traffic, true);
  const RunCosts costs(scenario, program, grid, symmetry, kernels, collectives);
  const std::int32_t own = symmetry.class_of_rank[rank.index()];

  std::map<RunKey, std::pair<const Instruction*, double>> runs;
  std::vector<RunKey> order;
  for (const Instruction& what : costs.role(own).instructions) {
    if (what.kind != InstructionKind::kRun) continue;
    const Pass pass = what.chunk < 0 ? Pass::kForward : what.pass;
    const RunKey key{pass, what.chunk, what.block_begin, what.block_end};
    const auto [found, fresh] = runs.try_emplace(key, &what, 0.0);
    found->second.second += 1;
    if (fresh) order.push_back(key);
  }
  TableBuilder builder;
  for (const RunKey& key : order) {
    const auto& [what, times] = runs.at(key);
    for (const PricedOperation& priced : costs.operations(own, *what)) builder.add(priced, times);
  }
  return builder.table();
}

}  // namespace stepcast
