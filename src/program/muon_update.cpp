// SPDX-License-Identifier: Apache-2.0
// The operations of Muon's update.
#include <algorithm>

#include "layout/scenario.h"

#include "program/muon_deal.h"

namespace stepcast {
namespace {

constexpr std::int64_t kFp32 = 4, kIterate = 2;
constexpr auto kBeside = BlockStream::kCommunication;

// Bytes of traffic for an element, and kernels: the gradient joins the momentum, and both give the
// update (Nesterov); the Frobenius norm and the first iterate; update and weight, and its copy.
struct Passes {
  double momentum, normalise, apply;
  std::int64_t kernels = 1;  // of the first and the last
};

Passes traffic_of(const Scenario& scenario) {
  const Training& training = scenario.training;
  const auto gradient = static_cast<double>(size_of(training.grad_precision));
  const auto weight = static_cast<double>(size_of(training.master_precision));
  const bool rounds = scenario.rules.keeps_master_weights && training.wide() != DataType::kFp32;
  switch (scenario.rules.muon_deal) {
    case MuonDeal::kMatrices:
      return {gradient + 3 * kFp32, 2 * kFp32 + kIterate, kIterate + 2 * kFp32 + kIterate};
    case MuonDeal::kOwners:
      // lerp_() and lerp(); a cast, a norm and a division; mul_() and add_().
      return {6 * gradient, weight + 4 * kIterate, 5 * weight, 2};
    case MuonDeal::kTouched:
    case MuonDeal::kTurns:
      // Two lerp_(); a compiled graph; mul_(), add_() of a flat gradient in fp32, and a copy.
      return {6 * gradient, 2 * gradient + kIterate,
              4 * weight + kFp32 + (rounds ? kFp32 + kIterate : 0), 2};
  }
  return {};
}

// The matrices that are worked on whole by one tensor rank of the group, the busiest.
std::vector<MuonMatrix> at_home(const std::vector<MuonMatrix>& all) {
  std::int64_t ranks = 1;
  for (const MuonMatrix& matrix : all) ranks = std::max(ranks, matrix.ranks);
  MatrixDeal deal(ranks);
  deal.bucket(all);
  return deal.busiest();
}

class Update {
 public:
  Update(const Scenario& scenario, const MuonShare& share, BlockBuilder& builder)
      : scenario_(scenario),
        share_(share),
        passes_(traffic_of(scenario)),
        tensor_(share.states.group == AxisGroup::kData ? AxisGroup::kTensor
                                                       : AxisGroup::kExpertTensor),
        data_(share.states.group),
        builder_(builder) {
    if (size_of(data_.outer(), scenario.layout) > 1) data_ = data_.inner();
  }

  void write_dealt();
  void write_touched();
  void write_in_turns();
  void write_owned();

 private:
  void pass(const char* name, std::int64_t elements, double bytes, std::int64_t kernels = 1,
            BlockBuilder::Buffers reads = {}) {
    if (elements == 0) return;
    builder_.add(name,
                 OptimizerUpdate{scenario_.training.grad_precision, false, false,
                                 builder_.size(elements, 0, bytes, kernels)},
                 reads, {});
  }
  void momentum(std::int64_t elements) {
    pass("momentum", elements, passes_.momentum, passes_.kernels);
  }
  void apply(std::int64_t elements, BlockBuilder::Buffers reads = {}) {
    pass("apply_update", elements, passes_.apply, passes_.kernels, reads);
  }
  void product(const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    const DataType type = scenario_.rules.muon_on_gram ? DataType::kFp16 : DataType::kBf16;
    builder_.add(name, Gemm{GemmRole::kForward, 1, m, n, k, type, type, false}, {}, {});
  }
  // Behind what writes `arrived`, where that is valid.
  void orthogonalise(const MuonMatrix& matrix, bool in_parts = false, BufferId arrived = {});
  void iterate(const MuonMatrix& matrix, bool in_parts);
  void iterate_on_gram(std::int64_t m, std::int64_t n);
  void exchange(const char* name, CollectiveKind kind, AxisGroup group, std::int64_t elements,
                DataType type, BlockBuilder::Buffers reads = {}, BlockBuilder::Buffers writes = {},
                BlockStream stream = BlockStream::kCompute) {
    builder_.collective(name, kind, group, elements, type, reads, writes, CollectivePurpose::kScale,
                        stream);
  }
  // Orders operations of two streams, and takes no memory: what is sent lies where it was reserved.
  BufferId mark(const char* name) {
    return builder_.buffer(name, 0, DataType::kFp32, MemoryCategory::kBuffers);
  }
  BufferId send(std::size_t bucket);
  // Elements of this rank's shards of a bucket.
  std::int64_t shards(const MuonBucket& bucket) const {
    const std::int64_t ranks = shard_ranks(scenario_, share_.states.group);
    return (bucket.elements + ranks - 1) / ranks;
  }

  const Scenario& scenario_;
  const MuonShare& share_;
  Passes passes_;
  AxisGroup tensor_, data_;
  BlockBuilder& builder_;
};

// A = X X^T, B = b A + c A A, X = a X + B X, on the shorter side m. In parts m is the side that is
// not cut, whichever is shorter, and A is the sum of the parts' products.
void Update::iterate(const MuonMatrix& matrix, bool in_parts) {
  std::int64_t m = matrix.shorter(), n = matrix.longer();
  if (in_parts) {
    m = matrix.cut == Cut::kRows ? matrix.columns : matrix.rows;
    n = matrix.elements() / m / matrix.ranks;
  }
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    product("newton_schulz_square", m, m, n);
    if (in_parts) {
      exchange("sum_newton_schulz", CollectiveKind::kAllReduce, tensor_, m * m, DataType::kBf16);
    }
    product("newton_schulz_power", m, m, m);
    product("newton_schulz_step", m, n, m);
  }
}

// With R = X X^T, the product Q of the iterations' factors a + Z, Z = b R + c R R, and R itself
// become m x m products: Q = (a + Z) Q, R = (a + Z) R (a + Z). X takes part before the third
// iteration, where R is made anew, and at the end.
void Update::iterate_on_gram(std::int64_t m, std::int64_t n) {
  constexpr int kRestart = 2;
  product("newton_schulz_square", m, m, n);
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    if (i == kRestart) {
      product("newton_schulz_step", m, n, m);
      product("newton_schulz_square", m, m, n);
    }
    product("newton_schulz_power", m, m, m);
    if (i != 0 && i != kRestart) product("newton_schulz_factor", m, m, m);
    if (i + 1 == kNewtonSchulzSteps || i + 1 == kRestart) continue;
    product("newton_schulz_gram", m, m, m);
    product("newton_schulz_gram", m, m, m);
  }
  product("newton_schulz_step", m, n, m);
}

void Update::orthogonalise(const MuonMatrix& matrix, bool in_parts, BufferId arrived) {
  pass("normalise", in_parts ? matrix.local() : matrix.elements(), passes_.normalise, 1, {arrived});
  if (scenario_.rules.muon_on_gram && matrix.rows != matrix.columns) {
    iterate_on_gram(matrix.shorter(), matrix.longer());
  } else {
    iterate(matrix, in_parts);
  }
}

void Update::write_dealt() {
  const std::vector<MuonMatrix>& own = share_.of_busiest;
  const MuonMode mode = scenario_.training.muon_mode;
  const bool at_homes = mode == MuonMode::kLayer;
  std::int64_t sent = 0;  // of cut matrices, to their home ranks
  for (const MuonMatrix& matrix : own) {
    momentum(matrix.local());
    if (matrix.ranks > 1) sent += matrix.local();
  }
  const bool sends = at_homes && sent > 0;
  if (sends) exchange("send_home", CollectiveKind::kAllToAll, tensor_, sent, DataType::kFp32);
  for (const MuonMatrix& matrix : at_homes ? at_home(own) : own) {
    const bool in_parts = mode == MuonMode::kDistributed && matrix.ranks > 1;
    if (mode == MuonMode::kDuplicated && matrix.ranks > 1) {
      exchange("gather_momentum", CollectiveKind::kAllGather, tensor_, matrix.elements(),
               DataType::kFp32);
    }
    if (in_parts) exchange("sum_norm", CollectiveKind::kAllReduce, tensor_, 1, DataType::kFp32);
    orthogonalise(matrix, in_parts);
  }
  if (sends) exchange("send_back", CollectiveKind::kAllToAll, tensor_, sent, DataType::kBf16);
  for (const MuonMatrix& matrix : own) apply(matrix.local());
}

void Update::write_touched() {
  for (const MuonMatrix& matrix : share_.of_busiest) {
    momentum(matrix.elements());
    orthogonalise(matrix);
  }
  apply(share_.states.updated);
}

// Results and momentum of a round are gathered beside the next one.
void Update::write_in_turns() {
  const DataType wire = scenario_.training.reduce_precision;
  const std::int64_t ranks = shard_ranks(scenario_, share_.states.group);
  BufferId last;
  for (const MuonBucket& round : share_.buckets) {
    for (const char* name : {"gather_gradients", "gather_momentum"}) {
      if (round.arrives == 0) continue;
      exchange(name, CollectiveKind::kAllGather, data_, round.arrives, wire);
      // The parts of each rank are copied into their place.
      pass("rearrange", round.arrives, 2.0 * static_cast<double>(size_of(wire)), ranks);
    }
    for (const MuonMatrix& matrix : round.work) {
      momentum(matrix.elements());
      orthogonalise(matrix);
    }
    for (const char* name : {"gather_updates", "gather_new_momentum"}) {
      if (round.leaves == 0) continue;
      last = mark(name);
      exchange(name, CollectiveKind::kAllGather, data_, round.leaves, wire, {}, {last}, kBeside);
    }
  }
  apply(share_.states.updated, {last});
}

BufferId Update::send(std::size_t bucket) {
  if (bucket >= share_.buckets.size()) return {};
  const MuonBucket& own = share_.buckets[bucket];
  momentum(shards(own));
  if (own.arrives == 0) return {};
  const BufferId arrived = mark("momentum_of_owners");
  exchange("send_to_owners", CollectiveKind::kAllToAll, data_, own.arrives,
           scenario_.training.master_precision, {}, {arrived}, kBeside);
  return arrived;
}

// A bucket is worked on while the next one's shards arrive and the last one's results go back.
void Update::write_owned() {
  std::vector<BufferId> arrived = {send(0), send(1)};
  BufferId before;  // results that are on their way
  for (std::size_t b = 0; b < share_.buckets.size(); ++b) {
    const MuonBucket& bucket = share_.buckets[b];
    const BufferId here = arrived[b];
    for (const MuonMatrix& matrix : bucket.work) orthogonalise(matrix, false, here);
    BufferId returned;
    if (bucket.leaves > 0) {
      returned = mark("updates_of_owners");
      exchange("send_back", CollectiveKind::kAllToAll, data_, bucket.leaves,
               scenario_.training.master_precision, {here}, {returned}, kBeside);
    }
    if (b > 0) apply(shards(share_.buckets[b - 1]), {before});
    arrived.push_back(send(b + 2));
    before = returned;
  }
  if (!share_.buckets.empty()) apply(shards(share_.buckets.back()), {before});
}

}  // namespace

void write_muon(const Scenario& scenario, const std::vector<MuonShare>& shares,
                BlockBuilder& builder) {
  for (const MuonShare& share : shares) {
    Update update(scenario, share, builder);
    switch (scenario.rules.muon_deal) {
      case MuonDeal::kMatrices:
        update.write_dealt();
        break;
      case MuonDeal::kTouched:
        update.write_touched();
        break;
      case MuonDeal::kTurns:
        update.write_in_turns();
        break;
      case MuonDeal::kOwners:
        update.write_owned();
        break;
    }
  }
}

}  // namespace stepcast
