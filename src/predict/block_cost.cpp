// SPDX-License-Identifier: Apache-2.0
#include "predict/block_cost.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "cost/gemm_cost.h"
#include "layout/scenario.h"
#include "predict/block_replay.h"
#include "predict/host_calls.h"
#include "predict/transfer_shapes.h"

namespace stepcast {
namespace {

// A product in pieces, and what it is pipelined with (docs/cost-models.md, "Tensor-parallel
// overlap"): a block of its own, replayed as any other. What is gathered moves before the piece
// that reads it, the first of which waits for nobody; what is reduced behind the piece that made
// it.
class PipelinedProduct {
 public:
  PipelinedProduct(const PricedOperation& product, std::int64_t pieces,
                   const PricedOperation& moved, std::int64_t moves, bool gathers) {
    operations_.reserve(static_cast<std::size_t>(pieces + moves));
    std::int32_t arrived = -1;
    for (std::int64_t k = 0; k < pieces; ++k) {
      const std::int32_t made = add(product, BlockStream::kCompute, gathers ? arrived : -1);
      if (k < moves) arrived = add(moved, BlockStream::kCommunication, gathers ? -1 : made);
    }
  }

  Seconds time() {
    settle(priced_);
    const std::vector<sim::Interval> when = replay_alone(each_operation_of(priced_));
    return when.empty() ? replay_block(priced_).gpu : sim::seconds(when.back().end);
  }

 private:
  // `before`: on the other stream.
  std::int32_t add(const PricedOperation& piece, BlockStream stream, std::int32_t before) {
    const Operation& whole = *piece.operation;
    Operation& own =
        operations_.emplace_back(Operation{whole.name, whole.phase, whole.work, {}, {}});
    own.stream = stream;
    const bool computes = stream == BlockStream::kCompute;
    const auto other = computes ? BlockStream::kCommunication : BlockStream::kCompute;
    own.after[static_cast<std::size_t>(other)] = before;
    priced_.push_back(piece);
    priced_.back().operation = &own;
    return static_cast<std::int32_t>(priced_.size()) - 1;
  }

  std::vector<Operation> operations_;
  std::vector<PricedOperation> priced_;
};

// Copies over links, without a block of their own, take this from a product beside them in memory
// bandwidth and power: kernels beside communication are slowed by 18.9 % on average (A100, H100,
// MI210 and MI250; arXiv 2507.03114).
constexpr double kLostToCopies = 1 - 1 / 1.189;

// How long a launch that waits for its kernel takes beyond kernel and issue: from the launch to the
// begin, and from the end until the host knows. A round trip of one elementwise kernel is 20 us
// (NVIDIA's guide of Nsight Systems, V100), and its issue and run are half of that.
constexpr double kRoundTripS = 10e-6;

// The loss, where the model and a micro-batch end.
bool is_loss(const Operation& operation) {
  return std::holds_alternative<CrossEntropy>(operation.work) && operation.phase == Phase::kForward;
}

bool prepares_weight(const Operation& operation) {
  const auto* cast = std::get_if<Cast>(&operation.work);
  return cast != nullptr && cast->subject == CastSubject::kWeight;
}

// Counts those FLOPs of the kernel that the model asks for: without the scores that the backward
// pass of fused attention computes again.
Flops flops_without_repeats(const Operation& operation) {
  const Flops all = flops_of(operation);
  const auto* attention = std::get_if<Attention>(&operation.work);
  if (attention == nullptr || !attention->backward) return all;
  const auto key = static_cast<double>(attention->head_dim);
  const auto value = attention->value_dim ? static_cast<double>(attention->value_dim.value) : key;
  return all * ((2 * key + 2 * value) / (3 * key + 2 * value));
}

const Collective* overlapped_collective(const Operation& operation) {
  const auto* collective = std::get_if<Collective>(&operation.work);
  return collective != nullptr && collective->overlapped ? collective : nullptr;
}

// Muon's update runs a few products over and over, for matrix after matrix: they are priced once.
class RecentProducts {
 public:
  // Null where no like product is among `priced`, of which this remembers a few.
  const PricedOperation* find(const Operation& operation,
                              const std::vector<PricedOperation>& priced) {
    if (operation.phase != Phase::kOptimizer || !std::holds_alternative<Gemm>(operation.work)) {
      return nullptr;
    }
    for (const std::size_t place : std::span(places_).first(filled_)) {
      if (is_like(*priced[place].operation, operation)) return &priced[place];
    }
    places_[next_++ % places_.size()] = priced.size();
    filled_ = std::min(filled_ + 1, places_.size());
    return nullptr;
  }

 private:
  static bool is_like(const Operation& a, const Operation& b) {
    const Gemm &x = std::get<Gemm>(a.work), &y = std::get<Gemm>(b.work);
    const auto all = [](const Gemm& g) {
      return std::tie(g.role, g.batch, g.m, g.n, g.k, g.input, g.output, g.accumulate, g.bias);
    };
    return a.stream == b.stream && all(x) == all(y);
  }

  std::array<std::size_t, 8> places_{};
  std::size_t next_ = 0, filled_ = 0;
};

}  // namespace

BlockCosts::BlockCosts(const Scenario& scenario, const KernelCosts& kernels,
                       const CollectiveCosts& collectives)
    : scenario_(scenario),
      kernels_(kernels),
      collectives_(collectives),
      host_(kernels.profile().host[scenario.training.framework]),
      devices_{{&kernels}},
      peak_(matrix_peak(kernels.accelerator(), scenario.training.precision)) {}

void BlockCosts::use_devices(std::vector<PassDevice> devices) {
  devices_ = std::move(devices);
  peak_ = matrix_peak(devices_.front().kernels->accelerator(), scenario_.training.precision);
}

const GroupPlacement* BlockCosts::placement(AxisGroup group) const {
  const auto found = std::ranges::find(groups_, group, &GroupPlacement::group);
  return found == groups_.end() || found->devices.size() < 2 ? nullptr : &*found;
}

Seconds BlockCosts::launch_collective() const { return Seconds(host_.collective_s); }
Seconds BlockCosts::launch_collective(const CollectiveCall& call) const {
  const bool shards = call.purpose == Purpose::kParameters || call.purpose == Purpose::kGradients;
  const bool list = scenario_.rules.gathers_into_lists && shards;
  const std::int64_t copies = list ? size_of(call.group, scenario_.layout) : 0;
  return launch_collective() + Seconds(host_.copy_s * static_cast<double>(copies));
}
Seconds BlockCosts::launch_copy() const { return Seconds(host_.launch_s); }

bool BlockCosts::in_graph(const Operation& operation) const {
  switch (scenario_.training.cuda_graphs) {
    case CudaGraphs::kOff:
      return false;
    case CudaGraphs::kAttention:
      return operation.graph_part != GraphPart::kNone;
    case CudaGraphs::kMoe:
      return operation.graph_part == GraphPart::kRouter;
    case CudaGraphs::kOn:
    case CudaGraphs::kFull:
      return true;
  }
  return false;
}

// The host does this for the operation beyond its launch. A graph holds kernels alone.
Seconds BlockCosts::host_beside(const Operation& operation) const {
  return in_graph(operation) ? Seconds(0) : calls_beside(operation, scenario_).time(host_);
}

RunCost BlockCosts::price_kernel(const KernelPrice& alone, const Operation& operation) const {
  RunCost out;
  KernelPrice price = alone;
  if (price.curve == Curve::kAttention) price.time *= attention_load_;
  const Phase phase = operation.phase;
  const bool backward = phase == Phase::kBackward || phase == Phase::kWeightGradient;
  const double launch = in_graph(operation)
                            ? host_.graph_launch_s
                            : host_.launch_s * (backward ? host_.backward_factor : 1.0);
  out.gpu = price.time;
  out.jitter = price.jitter;
  out.host = Seconds(launch * static_cast<double>(price.launches)) + host_beside(operation);
  out.floor = out.host + out.gpu;
  (phase == Phase::kRecompute   ? out.recompute
   : phase == Phase::kOptimizer ? out.optimizer
                                : out.compute) = price.time;
  if (phase != Phase::kRecompute && phase != Phase::kOptimizer) {
    (price.curve == Curve::kGemm        ? out.gemm
     : price.curve == Curve::kAttention ? out.attention
                                        : out.memory_bound) = price.time;
    // A kernel that beats the stated peak, at a higher clock, loses nothing.
    const Seconds ideal = std::min(flops_without_repeats(operation) / peak_, price.time);
    (price.curve == Curve::kAttention ? out.ideal_attention : out.ideal_gemm) = ideal;
  }
  const Curve error = price.exact ? Curve::kExact : price.curve;
  out.by_curve[static_cast<std::size_t>(error)] = price.time;
  out.by_provenance[static_cast<std::size_t>(price.provenance)] = price.time;
  return out;
}

KernelPrice BlockCosts::price_on(const PassDevice& device, const Operation& operation) const {
  KernelPrice price = device.kernels->price(operation);
  if (device.speed < 1) price.time *= 1 / device.speed;
  return price;
}

// Ranks that meet in every layer go at the pace of the slowest, and the others wait for it at the
// next collective. Updates meet only when they have ended.
void BlockCosts::wait_for_slowest(const Operation& operation, Curve curve, RunCost& cost) const {
  if (devices_.size() < 2 || operation.phase == Phase::kOptimizer) return;
  const auto group = std::ranges::find_if(
      groups_, [](const GroupPlacement& placed) { return placed.devices.size() > 1; });
  if (group == groups_.end()) return;
  Seconds longest = cost.gpu;
  for (const PassDevice& device : devices_) {
    longest = std::max(longest, price_kernel(price_on(device, operation), operation).gpu);
  }
  const Seconds lag = longest - cost.gpu;
  for (Seconds* part : {&cost.gpu, &cost.floor, &cost.communication(group->group), &cost.core_idle,
                        &cost.by_curve[static_cast<std::size_t>(curve)],
                        &cost.by_provenance[static_cast<std::size_t>(Provenance::kInterpolated)]}) {
    *part += lag;
  }
}

PricedOperation BlockCosts::price_collective(const Operation& operation,
                                             const Collective& collective) const {
  PricedOperation out{&operation, {}};
  const GroupPlacement* group = placement(collective.group);
  if (group == nullptr) return out;
  const CollectivePrice price = collectives_.price(message_of(collective), group->devices);
  RunCost& cost = out.cost;
  cost.gpu = price.time();
  cost.host = launch_collective() + host_beside(operation);
  cost.floor = cost.host + cost.gpu;
  cost.communication(collective.group) = cost.gpu;
  cost.core_idle = price.latency + (cost.gpu - price.latency) * (1 - price.cpu_share);
  cost.by_curve[static_cast<std::size_t>(price.curve)] = cost.gpu;
  cost.by_provenance[static_cast<std::size_t>(price.provenance)] = cost.gpu;
  block_host(cost, 1);
  if (collective.overlapped || runs_beside(out)) out.held = held_by(price);
  out.siblings = siblings_of(collective, price);
  return out;
}

// A message of a way that is not known, as of a piece, goes that of its kind.
SiblingFlow BlockCosts::siblings_of(const Collective& collective,
                                    const CollectivePrice& price) const {
  if (links_ == nullptr) return {};
  auto found = links_->uses.find({collective.group, way_of(message_of(collective), price)});
  if (found == links_->uses.end()) {
    found = std::ranges::find_if(links_->uses, [&](const auto& known) {
      return known.first.first == collective.group && known.first.second.kind == collective.kind;
    });
  }
  if (found == links_->uses.end()) return {};
  return {links_,           &found->second,
          price.latency,    price.work,
          price.rate_bound, static_cast<double>(std::max<std::int64_t>(1, price.channels))};
}

// The host goes on when the kernels of the operation have ended, one launch after the other.
void BlockCosts::block_host(RunCost& cost, std::int64_t launches) const {
  if (!scenario_.training.launch_blocking) return;
  cost.host += cost.gpu + Seconds(kRoundTripS * static_cast<double>(launches));
  cost.floor = cost.host;
}

PricedOperation BlockCosts::price(const Operation& operation) const {
  if (const auto* collective = std::get_if<Collective>(&operation.work)) {
    return price_collective(operation, *collective);
  }
  PricedOperation out{&operation, {}};
  if (std::holds_alternative<HostRead>(operation.work)) {
    out.cost.host = out.cost.floor = host_beside(operation);
  }
  if (!kernels_.runs(operation)) return out;
  const KernelPrice kernel = price_on(devices_.front(), operation);
  RunCost& cost = out.cost;
  cost = price_kernel(kernel, operation);
  wait_for_slowest(operation, kernel.curve, cost);
  cost.flops = flops_of(operation);
  if (is_loss(operation)) {
    cost.host += Seconds(host_.micro_batch_s);
    cost.floor = cost.host + cost.gpu;
  }
  block_host(cost, kernel.launches);
  return out;
}

std::vector<PricedOperation> BlockCosts::price_each(
    const std::vector<Operation>& operations) const {
  std::vector<PricedOperation> out;
  out.reserve(operations.size());
  RecentProducts recent;
  for (const Operation& operation : operations) {
    const PricedOperation* known = recent.find(operation, out);
    out.push_back(known != nullptr ? PricedOperation(*known) : price(operation));
    out.back().operation = &operation;
  }
  const std::vector<SplitProduct> splits = find_splits(out);
  if (!on_one_stream(out)) return shortest(out, splits);
  settle_all(out);
  std::vector<const SplitProduct*> best;  // one after the other each product is by itself
  for (const SplitProduct& split : splits) {
    if (is_best(split, splits, out)) best.push_back(&split);
  }
  for (const SplitProduct* split : best) split->apply(out);
  finish(out);
  return out;
}

// Gives operations their times beside each other. If launches block, the host waits as much longer.
void BlockCosts::settle_all(std::span<PricedOperation> operations) const {
  std::vector<Seconds> alone;
  for (const PricedOperation& one : operations) alone.push_back(one.cost.gpu);
  settle(operations);
  if (!scenario_.training.launch_blocking) return;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    RunCost& cost = operations[i].cost;
    if (cost.gpu == alone[i]) continue;
    cost.host += cost.gpu - alone[i];
    cost.floor = cost.host;
  }
}

// Takes from each operation what those around it take.
void BlockCosts::finish(std::vector<PricedOperation>& operations) const {
  wait_for_last(operations);
  settle_all(operations);
  wait_for_reads(operations);
}

// Beside other streams a longer product may hide what else is moved, so that which products are
// split is a question of the whole pass: of all ways, it runs the shortest.
std::vector<PricedOperation> BlockCosts::shortest(const std::vector<PricedOperation>& whole,
                                                  std::span<const SplitProduct> splits) const {
  // More than a pass of a layer has. Those beyond are decided by themselves.
  constexpr std::size_t kMostSplits = 8;
  const std::size_t open = std::min(splits.size(), kMostSplits);
  std::vector<PricedOperation> best;
  Seconds least;
  for (std::size_t way = 0; way < std::size_t{1} << open; ++way) {
    std::vector<PricedOperation> out = whole;
    std::set<std::size_t> products;
    bool is_possible = true;
    for (std::size_t i = 0; i < splits.size(); ++i) {
      if (!(i < open ? (way >> i & 1) != 0 : is_best(splits[i], splits, whole))) continue;
      is_possible = is_possible && products.insert(splits[i].computed).second;
      splits[i].apply(out);
    }
    if (!is_possible) continue;
    finish(out);
    const Seconds time = open > 0 ? replay_block(out).gpu : Seconds(0);
    if (!best.empty() && !(time < least)) continue;
    least = time;
    best = std::move(out);
  }
  return best;
}

// It saves time, and more than a split of the same product for its other neighbour.
bool BlockCosts::is_best(const SplitProduct& split, std::span<const SplitProduct> splits,
                         std::span<const PricedOperation> operations) const {
  const auto saved = [&](const SplitProduct& one) {
    return operations[one.moved].cost.gpu + operations[one.computed].cost.gpu - one.moving -
           one.computing;
  };
  return saved(split) > Seconds(0) && std::ranges::none_of(splits, [&](const SplitProduct& other) {
           if (&other == &split || other.computed != split.computed) return false;
           return saved(other) > saved(split) || (saved(other) == saved(split) && &other < &split);
         });
}

void BlockCosts::SplitProduct::apply(std::span<PricedOperation> operations) const {
  RunCost& product = operations[computed].cost;
  product = product.exposed(computing);
  RunCost& collective = operations[moved].cost;
  collective = collective.exposed(moving);
  operations[moved].siblings = {};
}

// An all-gather is pipelined with the product that reads it, a reduction with the one that feeds
// it.
std::vector<BlockCosts::SplitProduct> BlockCosts::find_splits(
    std::span<const PricedOperation> operations) const {
  std::vector<SplitProduct> out;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Collective* collective = overlapped_collective(*operations[i].operation);
    if (collective == nullptr || placement(collective->group) == nullptr) continue;
    std::size_t product =
        collective->kind == CollectiveKind::kAllGather ? i + 1 : i - 1;  // wraps to none
    // A weight that is cast for the product does not wait for what is gathered.
    while (product < operations.size() && product > i &&
           prepares_weight(*operations[product].operation)) {
      ++product;
    }
    if (product >= operations.size()) continue;
    if (const auto split = split_product(*collective, operations, i, product)) {
      out.push_back(*split);
    }
  }
  return out;
}

// The product in pieces of its rows, each at the speed of its own size. Gathered pieces go around
// the ring by copies (one SM or a copy engine), and so do those that are added up at the end;
// pieces that a collective reduces lose its SMs. A product is split for one of its neighbours, and
// only where that helps: a framework's table of methods says so for each.
std::optional<BlockCosts::SplitProduct> BlockCosts::split_product(
    const Collective& collective, std::span<const PricedOperation> operations, std::size_t moved,
    std::size_t computed) const {
  const Operation& product = *operations[computed].operation;
  const auto* whole = std::get_if<Gemm>(&product.work);
  if (whole == nullptr || product.stream != BlockStream::kCompute) return std::nullopt;
  const std::vector<DeviceId>& devices = placement(collective.group)->devices;
  const auto members = static_cast<std::int64_t>(devices.size());
  const bool gathers = collective.kind == CollectiveKind::kAllGather;
  const bool copies = gathers || scenario_.rules.reduced_pieces == 0;
  const std::int64_t pieces = copies ? members : scenario_.rules.reduced_pieces;
  Operation piece = product;
  auto& gemm = std::get<Gemm>(piece.work);
  gemm.m = (whole->m + pieces - 1) / pieces;
  const PricedOperation alone = price(piece);
  PricedOperation part = operations[moved];
  if (copies) {
    part = part.in_parts(static_cast<double>(members - 1));
    part.held = kLostToCopies;
  } else {
    Collective reduced = collective;
    reduced.bytes = collective.bytes / pieces;
    part = price_collective(*part.operation, reduced);
  }
  const std::int64_t moves = copies ? members - 1 : pieces;
  Seconds both = PipelinedProduct(alone, pieces, part, moves, gathers).time();
  if (copies && !gathers) both += sum_of_pieces(collective, members);
  const Seconds busy = alone.cost.gpu * static_cast<double>(pieces);
  return SplitProduct{moved, computed, busy, std::max(Seconds(0), both - busy)};
}

// Reads every member's part of a shard and writes the shard.
Seconds BlockCosts::sum_of_pieces(const Collective& collective, std::int64_t members) const {
  const double traffic = 1 + 1 / static_cast<double>(members);
  return bytes(collective.bytes) * traffic /
         (scenario_.cluster.spec.accelerator.memory_bandwidth * kernels_.profile().memory.fraction);
}

// The part of the processor that it takes while it moves.
double BlockCosts::held_by(const CollectivePrice& price) const {
  const Accelerator& device = scenario_.cluster.spec.accelerator;
  if (device.is_cpu()) return 0;  // cores are shared in the replay of the step
  return held_fraction(kernels_.profile().sms_per_channel, price.channels, device.sm_count);
}

// Each collective begins when the last member has finished what comes before it.
void BlockCosts::wait_for_last(std::vector<PricedOperation>& operations) const {
  Jitter since_meeting;
  for (PricedOperation& own : operations) {
    const auto* collective = std::get_if<Collective>(&own.operation->work);
    if (collective == nullptr) {
      since_meeting += own.cost.jitter;
      continue;
    }
    const GroupPlacement* group = placement(collective->group);
    if (group == nullptr) continue;
    own.lag = lag_of_last(since_meeting, static_cast<std::int64_t>(group->devices.size()));
    since_meeting = {};
  }
}

// A host that reads from the device issues nothing until the device has come there: the device then
// waits for the answer and for the launches behind it, as far as the kernels before each do not
// hide them.
void BlockCosts::wait_for_reads(std::vector<PricedOperation>& operations) const {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!std::holds_alternative<HostRead>(operations[i].operation->work)) continue;
    Seconds issued(kRoundTripS), busy, idle = issued;
    for (std::size_t j = i + 1; j < operations.size(); ++j) {
      const RunCost& cost = operations[j].cost;
      if (std::holds_alternative<HostRead>(operations[j].operation->work)) break;
      issued += cost.host;
      if (cost.gpu.value() > 0) idle = std::max(idle, issued - busy);
      if (!runs_beside(operations[j])) busy += cost.gpu;
    }
    RunCost& wait = operations[i].cost;
    wait.gpu = wait.communication(AxisGroup::kExpert) = idle;
    wait.floor = wait.host + idle;
    wait.by_curve[static_cast<std::size_t>(Curve::kHost)] = idle;
    wait.by_provenance[static_cast<std::size_t>(Provenance::kInterpolated)] = idle;
  }
}

RunCost BlockCosts::price(const std::vector<Operation>& operations) const {
  return replay_block(price_each(operations));
}

}  // namespace stepcast
