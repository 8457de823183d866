// SPDX-License-Identifier: Apache-2.0
#include "program/muon.h"

#include <algorithm>
#include <functional>

#include "core/json.h"
#include "layout/axis_group.h"
#include "layout/scenario.h"
#include "program/muon_deal.h"
#include "program/walk.h"

namespace stepcast {
namespace {

constexpr std::int64_t kInput = 4, kSixteenBits = 2;  // of Megatron, and of iterates

// Whether the parts of a packed weight are matrices of their own. Megatron splits queries, keys and
// values alone (muon_split_qkv); elsewhere the model's code has them apart, and gate and up too, in
// the Llama form.
bool is_apart(const Scenario& scenario, const Parameter& weight) {
  const auto parts = std::ranges::count_if(weight.parts, std::identity());
  if (!scenario.rules.muon_keeps_packed) return parts == 3;
  return scenario.model.mlp == Mlp::kSwiglu && parts > 1;
}

void add_matrices(const Scenario& scenario, const Parameter& weight, std::vector<MuonMatrix>& out) {
  const Layout& layout = scenario.layout;
  const bool of_experts = weight.copies > 1 || weight.replicas == AxisGroup::kExpertData;
  const std::int64_t cut = of_experts ? layout.etp : layout.tp;
  const bool whole = scenario.training.muon_mode == MuonMode::kBlockwise;
  const std::int64_t ranks = weight.cut == Cut::kNone || whole ? 1 : cut;
  const auto add = [&](std::int64_t rows) {
    MuonMatrix matrix{rows, weight.columns, weight.cut, ranks, weight.copies};
    if (weight.cut == Cut::kRows) matrix.rows *= ranks;
    if (weight.cut == Cut::kColumns) matrix.columns *= ranks;
    for (std::int64_t copy = 0; copy < weight.copies; ++copy) out.push_back(matrix);
  };
  if (!is_apart(scenario, weight)) return add(weight.rows / weight.copies);
  for (const std::int64_t rows : weight.parts) {
    if (rows > 0) add(rows);
  }
}

// The matrices that a group reduces, in buckets of at least `least` elements; 0: of a block.
struct Matrices {
  std::vector<std::vector<MuonMatrix>> buckets;
  std::int64_t elements = 0;

  std::vector<MuonMatrix> all() const {
    std::vector<MuonMatrix> out;
    for (const auto& bucket : buckets) out.insert(out.end(), bucket.begin(), bucket.end());
    return out;
  }
};

Matrices matrices_of(const Scenario& scenario, const Program& program, const Role& role,
                     AxisGroup group, std::int64_t least) {
  Matrices out;
  std::vector<MuonMatrix> bucket;
  std::int64_t filled = 0;
  const auto close = [&] {
    if (!bucket.empty()) out.buckets.push_back(std::exchange(bucket, {}));
    out.elements += std::exchange(filled, 0);
  };
  for_each_block(program, role, [&](const Block& block) {
    for (const Parameter& weight : block.weights) {
      const bool trained = weight.storage == WeightStorage::kTrained && !weight.borrowed;
      const bool is_matrix = weight.columns > 1 && !weight.is_table &&
                             block.kind != BlockKind::kEmbedding && weight.rows > 1;
      if (!trained || !is_matrix || weight.replicas != group) continue;
      add_matrices(scenario, weight, bucket);
      filled += weight.elements();
    }
    if (filled >= least) close();
  });
  close();
  return out;
}

MuonShare dealt(const Scenario& scenario, const Program& program, const Role& role,
                AxisGroup group) {
  const FrameworkRules& rules = scenario.rules;
  const bool by_bucket = scenario.layout.overlap.grad_reduce && rules.bucket_elements > 0;
  const std::int64_t least = rules.muon_deal == MuonDeal::kOwners ? 0
                             : by_bucket                          ? rules.bucket_elements
                                                                  : ObjectReader::kMaxCount;
  const Matrices matrices = matrices_of(scenario, program, role, group, least);
  MuonShare share;
  share.states.group = group;
  share.states.elements = matrices.elements;
  const std::int64_t ranks = scenario.layout.zero >= 1 ? shard_ranks(scenario, group) : 1;
  switch (rules.muon_deal) {
    case MuonDeal::kMatrices: {
      MatrixDeal deal(ranks);
      for (const auto& bucket : matrices.buckets) deal.bucket(bucket);
      share.states.updated = share.states.moments = deal.padded();
      share.of_busiest = deal.busiest();
      break;
    }
    case MuonDeal::kTouched:
      deal_touched(matrices.all(), ranks, share);
      break;
    case MuonDeal::kTurns:
      deal_in_turns(matrices.all(), ranks,
                    rules.bucket_elements > 0 ? rules.bucket_elements : ObjectReader::kMaxCount,
                    share);
      break;
    case MuonDeal::kOwners:
      deal_to_owners(matrices.buckets, ranks, share);
      break;
  }
  return share;
}

// It holds two iterates, and square matrices beside them: A and B, or R, Z, Q and a product.
// Megatron has input and what it normalises in fp32 too; others' input lies among the gradients or
// what arrived.
ByteCount bytes_at_work(const Scenario& scenario, const MuonMatrix& matrix) {
  const FrameworkRules& rules = scenario.rules;
  const std::int64_t m = matrix.shorter();
  const std::int64_t input = rules.muon_deal == MuonDeal::kMatrices ? 2 * kInput : 0;
  const std::int64_t squares = rules.muon_on_gram ? 4 : 2;
  return (input + 2 * kSixteenBits) * matrix.elements() + squares * kSixteenBits * m * m;
}

}  // namespace

double MuonMatrix::cost() const {
  const auto m = static_cast<double>(shorter());
  return static_cast<double>(longer()) * m * m;
}

double MuonMatrix::operations() const {
  const auto m = static_cast<double>(shorter()), n = static_cast<double>(longer());
  return kNewtonSchulzSteps * (4 * m * m * n + 2 * m * m * m);
}

double MuonMatrix::operations_on_gram() const {
  if (rows == columns) return operations();
  const auto m = static_cast<double>(shorter()), n = static_cast<double>(longer());
  return 8 * m * m * n + 28 * m * m * m;
}

std::vector<MuonShare> muon_shares(const Scenario& scenario, const Program& program,
                                   const Role& role) {
  if (scenario.training.optimizer != Optimizer::kMuon) return {};
  std::vector<MuonShare> out;
  for (const FlatStretch& stretch : role.stretches) {
    MuonShare share = dealt(scenario, program, role, stretch.group);
    if (share.states.elements > 0) out.push_back(std::move(share));
  }
  return out;
}

ByteCount muon_workspace(const Scenario& scenario, const std::vector<MuonShare>& shares) {
  const std::int64_t gradient = size_of(scenario.training.grad_precision);
  const std::int64_t wire = size_of(scenario.training.reduce_precision);
  ByteCount most = 0;
  for (const MuonShare& share : shares) {
    ByteCount one = 0;
    for (const MuonMatrix& matrix : share.of_busiest) {
      one = std::max(one, bytes_at_work(scenario, matrix));
    }
    // The updates of whole matrices lie beside the gradients until they are cut.
    const bool is_cut = scenario.rules.muon_deal == MuonDeal::kTouched && scenario.layout.zero >= 1;
    most = std::max(most, one + (is_cut ? gradient * share.states.moments : 0));
    if (scenario.rules.muon_deal != MuonDeal::kTurns) continue;
    // Gradients lie there when momentum arrives, which is copied into its order; then both stay.
    for (const MuonBucket& round : share.buckets) {
      most = std::max(most, 3 * wire * round.arrives);
      most = std::max(most, 2 * wire * round.arrives + one);
    }
  }
  return most;
}

// Two slots of what a rank's shards of a bucket take, what its own matrices do, and one of both
// (_optimizer_reshard_runtime.py: reserve_buffers), in the type of the parameters.
ByteCount reserved_for_muon(const Scenario& scenario, const MuonShare& share) {
  if (scenario.rules.muon_deal != MuonDeal::kOwners) return 0;
  const std::int64_t ranks = shard_ranks(scenario, share.states.group);
  std::int64_t shards = 0, owned = 0, largest = 0;
  for (const MuonBucket& bucket : share.buckets) {
    if (bucket.arrives > 0) shards = std::max(shards, (bucket.elements + ranks - 1) / ranks);
    owned = std::max(owned, bucket.arrives);
    for (const MuonMatrix& matrix : bucket.work) largest = std::max(largest, matrix.elements());
  }
  const std::int64_t slots = share.buckets.size() > 1 ? 2 : 1;
  return slots * size_of(scenario.training.master_precision) *
         (shards + owned + largest + (owned > 0 ? (largest + ranks - 1) / ranks : 0));
}

}  // namespace stepcast
