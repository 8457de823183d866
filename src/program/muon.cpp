// SPDX-License-Identifier: Apache-2.0
#include "program/muon.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "layout/axis_group.h"
#include "memory/states.h"
#include "program/walk.h"

namespace stepcast {
namespace {

constexpr int kIterations = 5;                   // muon_num_ns_steps
constexpr std::int64_t kFp32 = 4, kIterate = 2;  // iterates are bf16 (muon_fp32_matmul_prec)
// layer_wise_optimizer.py: a shard may exceed the mean by so much.
constexpr double kMostOfMean = 1.3;

// The matrices of a parameter: each expert's is one, and queries, keys and values are three
// (muon_split_qkv).
void add_matrices(const Scenario& scenario, const Parameter& weight, std::vector<MuonMatrix>& out) {
  const Layout& layout = scenario.layout;
  const bool of_experts = weight.copies > 1 || weight.replicas == AxisGroup::kExpertData;
  const std::int64_t cut = of_experts ? layout.etp : layout.tp;
  const std::int64_t ranks = weight.cut == Cut::kNone ? 1 : cut;
  const auto add = [&](std::int64_t rows) {
    MuonMatrix matrix{rows, weight.columns, weight.cut, ranks};
    if (weight.cut == Cut::kRows) matrix.rows *= ranks;
    if (weight.cut == Cut::kColumns) matrix.columns *= ranks;
    for (std::int64_t copy = 0; copy < weight.copies; ++copy) out.push_back(matrix);
  };
  const bool apart = std::ranges::count_if(weight.parts, std::identity()) == 3;
  if (!apart) return add(weight.rows / weight.copies);
  for (const std::int64_t rows : weight.parts) add(rows);
}

// Deals the matrices of a bucket to data ranks: the largest first, each to the rank with the least
// to do whose shard has room.
class Deal {
 public:
  explicit Deal(std::int64_t ranks)
      : costs_(static_cast<std::size_t>(ranks)), matrices_(static_cast<std::size_t>(ranks)) {}

  void bucket(std::vector<MuonMatrix> own) {
    std::ranges::stable_sort(own, std::greater(), &MuonMatrix::cost);
    std::vector<std::int64_t> sizes(costs_.size(), 0);
    std::int64_t all = 0;
    for (const MuonMatrix& matrix : own) all += matrix.local();
    const double room = kMostOfMean * static_cast<double>(all) / static_cast<double>(sizes.size());
    for (const MuonMatrix& matrix : own) {
      const std::size_t rank = choose(sizes, matrix.local(), room);
      sizes[rank] += matrix.local();
      costs_[rank] += matrix.cost();
      matrices_[rank].push_back(matrix);
    }
    padded_ += *std::ranges::max_element(sizes);
  }
  std::int64_t padded() const { return padded_; }
  const std::vector<MuonMatrix>& busiest() const {
    return matrices_[static_cast<std::size_t>(std::ranges::max_element(costs_) - costs_.begin())];
  }

 private:
  std::size_t choose(const std::vector<std::int64_t>& sizes, std::int64_t more, double room) const {
    std::size_t best = 0;
    bool found = false;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      const bool fits = sizes[rank] == 0 || static_cast<double>(sizes[rank] + more) <= room;
      if (!fits || (found && costs_[rank] >= costs_[best])) continue;
      best = rank;
      found = true;
    }
    if (found) return best;
    return static_cast<std::size_t>(std::ranges::min_element(sizes) - sizes.begin());
  }

  std::vector<double> costs_;
  std::vector<std::vector<MuonMatrix>> matrices_;
  std::int64_t padded_ = 0;
};

// The matrices that are worked on whole by one tensor rank of the group, the busiest.
std::vector<MuonMatrix> at_home(const std::vector<MuonMatrix>& all) {
  std::int64_t ranks = 1;
  for (const MuonMatrix& matrix : all) ranks = std::max(ranks, matrix.ranks);
  Deal deal(ranks);
  deal.bucket(all);
  return deal.busiest();
}

class Update {
 public:
  Update(const Scenario& scenario, AxisGroup tensor, BlockBuilder& builder)
      : scenario_(scenario), tensor_(tensor), builder_(builder) {}

  void write(const std::vector<MuonMatrix>& own);

 private:
  void pass(const char* name, std::int64_t elements, double bytes) {
    builder_.add(name,
                 OptimizerUpdate{scenario_.training.grad_precision, false, false,
                                 builder_.size(elements, 0, bytes)},
                 {}, {});
  }
  void product(const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    builder_.add(name,
                 Gemm{GemmRole::kForward, 1, m, n, k, DataType::kBf16, DataType::kBf16, false}, {},
                 {});
  }
  void iterate(const MuonMatrix& matrix, bool in_parts);
  void exchange(const char* name, CollectiveKind kind, std::int64_t elements, DataType type) {
    builder_.collective(name, kind, tensor_, elements, type, {}, {}, CollectivePurpose::kScale);
  }

  const Scenario& scenario_;
  AxisGroup tensor_;
  BlockBuilder& builder_;
};

// A = X X^T, B = b A + c A A, X = a X + B X, on the shorter side m. In parts m is the side that is
// not cut, whichever is shorter, and A is the sum of the parts' products.
void Update::iterate(const MuonMatrix& matrix, bool in_parts) {
  std::int64_t m = std::min(matrix.rows, matrix.columns);
  std::int64_t n = std::max(matrix.rows, matrix.columns);
  if (in_parts) {
    m = matrix.cut == Cut::kRows ? matrix.columns : matrix.rows;
    n = matrix.elements() / m / matrix.ranks;
  }
  for (int i = 0; i < kIterations; ++i) {
    product("newton_schulz_square", m, m, n);
    if (in_parts) {
      exchange("sum_newton_schulz", CollectiveKind::kAllReduce, m * m, DataType::kBf16);
    }
    product("newton_schulz_power", m, m, m);
    product("newton_schulz_step", m, n, m);
  }
}

void Update::write(const std::vector<MuonMatrix>& own) {
  const MuonMode mode = scenario_.training.muon_mode;
  const auto gradient = static_cast<double>(size_of(scenario_.training.grad_precision));
  const bool at_homes = mode == MuonMode::kLayer;
  std::int64_t sent = 0;  // of cut matrices, to their home ranks
  for (const MuonMatrix& matrix : own) {
    // The gradient joins the momentum, and both give the update (Nesterov).
    pass("momentum", matrix.local(), gradient + 3 * kFp32);
    if (matrix.ranks > 1) sent += matrix.local();
  }
  if (at_homes && sent > 0) {
    exchange("send_home", CollectiveKind::kAllToAll, sent, DataType::kFp32);
  }
  for (const MuonMatrix& matrix : at_homes ? at_home(own) : own) {
    const bool in_parts = mode == MuonMode::kDistributed && matrix.ranks > 1;
    if (mode == MuonMode::kDuplicated && matrix.ranks > 1) {
      exchange("gather_momentum", CollectiveKind::kAllGather, matrix.elements(), DataType::kFp32);
    }
    if (in_parts) exchange("sum_norm", CollectiveKind::kAllReduce, 1, DataType::kFp32);
    // Frobenius norm, and the first iterate.
    pass("normalise", in_parts ? matrix.local() : matrix.elements(), 2 * kFp32 + kIterate);
    iterate(matrix, in_parts);
  }
  if (at_homes && sent > 0) {
    exchange("send_back", CollectiveKind::kAllToAll, sent, DataType::kBf16);
  }
  for (const MuonMatrix& matrix : own) {
    // Reads update and weight, writes the weight and its rounded copy.
    pass("apply_update", matrix.local(), kIterate + 2 * kFp32 + kIterate);
  }
}

}  // namespace

double MuonMatrix::cost() const {
  const auto m = static_cast<double>(std::min(rows, columns));
  return static_cast<double>(std::max(rows, columns)) * m * m;
}

std::vector<MuonShare> muon_shares(const Scenario& scenario, const Program& program,
                                   const Role& role) {
  if (scenario.training.optimizer != Optimizer::kMuon) return {};
  const bool cuts = scenario.layout.overlap.grad_reduce && scenario.rules.bucket_elements > 0;
  const std::int64_t most = cuts ? scenario.rules.bucket_elements : ObjectReader::kMaxCount;
  std::vector<MuonShare> out;
  for (const FlatStretch& stretch : role.stretches) {
    const std::int64_t ranks = scenario.layout.zero >= 1 ? shard_ranks(scenario, stretch.group) : 1;
    Deal deal(ranks);
    std::vector<MuonMatrix> bucket;
    std::int64_t filled = 0, all = 0;
    const auto close = [&] {
      if (!bucket.empty()) deal.bucket(std::exchange(bucket, {}));
      filled = 0;
    };
    for_each_block(program, role, [&](const Block& block) {
      for (const Parameter& weight : block.weights) {
        const bool trained = weight.storage == WeightStorage::kTrained && !weight.borrowed;
        const bool is_matrix = weight.columns > 1 && !weight.is_table &&
                               block.kind != BlockKind::kEmbedding && weight.rows > 1;
        if (!trained || !is_matrix || weight.replicas != stretch.group) continue;
        add_matrices(scenario, weight, bucket);
        filled += weight.elements();
        all += weight.elements();
      }
      if (filled >= most) close();
    });
    close();
    if (all > 0) out.push_back({stretch.group, all, deal.padded(), deal.busiest()});
  }
  return out;
}

void write_muon(const Scenario& scenario, const std::vector<MuonShare>& shares,
                BlockBuilder& builder) {
  for (const MuonShare& share : shares) {
    const bool dense = share.group == AxisGroup::kData;
    Update(scenario, dense ? AxisGroup::kTensor : AxisGroup::kExpertTensor, builder)
        .write(share.of_busiest);
  }
}

// The fp32 input and what is normalised, two iterates in 16 bits, and A and B.
ByteCount muon_workspace(const std::vector<MuonShare>& shares) {
  ByteCount most = 0;
  for (const MuonShare& share : shares) {
    for (const MuonMatrix& matrix : share.of_busiest) {
      const std::int64_t m = std::min(matrix.rows, matrix.columns);
      most = std::max(most, (2 * kFp32 + 2 * kIterate) * matrix.elements() + 2 * kIterate * m * m);
    }
  }
  return most;
}

}  // namespace stepcast
