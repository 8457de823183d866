// SPDX-License-Identifier: Apache-2.0
#include "cost/collective_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "core/assert.h"
#include "core/enum_names.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/remembered_files.h"
#include "cost/nccl_graph.h"

namespace stepcast {
namespace {

// NCCL or RCCL runs on these.
std::vector<GpuArchitecture> measured_architectures() {
  std::vector<GpuArchitecture> out = all_architectures();
  std::erase_if(out, [](GpuArchitecture architecture) {
    return !traits_of(architecture).nccl.has_value() && !traits_of(architecture).runs_rccl;
  });
  return out;
}

std::optional<GpuArchitecture> read_architecture(ObjectReader& reader) {
  static const std::vector<GpuArchitecture> known = measured_architectures();
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const GpuArchitecture architecture : known) out.emplace_back(name_of(architecture));
    return out;
  }();
  const auto found = reader.choice("architecture", names);
  return found ? std::optional(known[*found]) : std::nullopt;
}

std::vector<std::string> scale_up_names() { return {"nvswitch", "mesh", "pcie"}; }

bool has_rccl(const ClusterSpec& cluster) {
  return traits_of(cluster.accelerator.architecture).runs_rccl;
}

int generation(const ClusterSpec& cluster) {
  const GpuArchitecture architecture = cluster.accelerator.architecture;
  if (has_rccl(cluster)) return static_cast<int>(architecture);
  return static_cast<int>(nccl_generation(architecture));
}

// Distances between what was measured and what is asked. Only their order matters: first the same
// sequence of steps, then the same network, then the same GPUs, then a group of like size.
constexpr double kRelatedKind = 1;   // all-gather and reduce-scatter; broadcast like all-gather
constexpr double kComposedKind = 8;  // a ring all-reduce is both, one after the other
constexpr double kOtherAlgorithm = 6;
constexpr double kOtherNetwork = 12;
constexpr double kPerGeneration = 3;
constexpr double kPerDoubling = 0.5;
constexpr double kUnrelated = std::numeric_limits<double>::infinity();

double kind_distance(CollectiveKind a, CollectiveKind b) {
  if (a == b) return 0;
  const auto halves = [](CollectiveKind t) {
    return t == CollectiveKind::kAllGather || t == CollectiveKind::kReduceScatter ||
           t == CollectiveKind::kBroadcast;
  };
  if (halves(a) && halves(b)) return kRelatedKind;
  if ((halves(a) && b == CollectiveKind::kAllReduce) ||
      (halves(b) && a == CollectiveKind::kAllReduce)) {
    return kComposedKind;
  }
  return kUnrelated;
}

bool same_network(std::optional<Network> a, std::optional<Network> b) {
  return a == b || (speaks_verbs(a) && speaks_verbs(b));
}

double doublings(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

bool like(BytesPerSecond a, BytesPerSecond b) { return std::abs(a / b - 1) < 0.03; }

Seconds nominal_time(const NcclEstimate& estimate, BytesPerSecond asymptote, Bytes size) {
  return estimate.latency + size / std::min(estimate.bandwidth, asymptote);
}

double distance(const MeasuredGroup& measured, const ClusterSpec& cluster, const GroupShape& group,
                CollectiveKind kind) {
  const bool network = group.domains > 1;
  if ((measured.group.domains > 1) != network) return kUnrelated;
  if (has_rccl(measured.cluster) != has_rccl(cluster)) return kUnrelated;  // another library
  const bool pcie = cluster.scale_up == ScaleUp::kPcie;
  if (!network && (measured.cluster.scale_up == ScaleUp::kPcie) != pcie) return kUnrelated;
  double total = kind_distance(measured.kind, kind);
  if (network && !same_network(measured.cluster.network, cluster.network)) total += kOtherNetwork;
  total += kPerGeneration * std::abs(generation(measured.cluster) - generation(cluster));
  return total + kPerDoubling * (doublings(measured.group.ranks, group.ranks) +
                                 doublings(measured.group.domains, group.domains));
}

Provenance provenance_of(const MeasuredGroup& measured, const ClusterSpec& cluster,
                         const GroupShape& group, CollectiveKind kind, bool inside) {
  const bool network = group.domains > 1;
  const bool same_machine =
      measured.cluster.accelerator.architecture == cluster.accelerator.architecture &&
      (!network || same_network(measured.cluster.network, cluster.network));
  if (!inside || !same_machine || kind_distance(measured.kind, kind) > kRelatedKind) {
    return Provenance::kExtrapolated;
  }
  const bool same_group =
      measured.kind == kind && measured.group.ranks == group.ranks &&
      measured.group.domains == group.domains &&
      like(nccl_scale_up_bandwidth(measured.cluster),
           nccl_scale_up_bandwidth(cluster) * group.scale_up_left) &&
      (!network || (measured.group.nics == group.nics &&
                    like(measured.cluster.nic_bandwidth, cluster.nic_bandwidth * group.nic_left)));
  return same_group ? Provenance::kMeasured : Provenance::kInterpolated;
}

// Bytes that a ring's rank hands on per byte of payload.
double handed_on(CollectiveKind kind, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  return (kind == CollectiveKind::kAllReduce ? 2 : 1) * (n - 1) / n;
}

// Boxes without NVLink: a ring across them also goes round inside each, over PCIe.
bool goes_round_on_pcie(const ClusterSpec& cluster, const GroupShape& group, CollectiveKind kind) {
  const bool is_ring = kind != CollectiveKind::kAllToAll && kind != CollectiveKind::kSendReceive;
  return is_ring && cluster.scale_up == ScaleUp::kPcie && group.domains > 1 && group.largest > 1;
}

}  // namespace

CollectiveCurve::CollectiveCurve(MeasuredGroup measured, std::vector<CollectiveSample> samples)
    : measured_(std::move(measured)), samples_(std::move(samples)) {
  STEPCAST_ASSERT(!samples_.empty(), "a curve needs samples");
  // A message takes no longer than a longer one, as which it could be sent: one that did was
  // disturbed.
  for (std::size_t i = samples_.size() - 1; i-- > 0;) {
    samples_[i].time = std::min(samples_[i].time, samples_[i + 1].time);
  }
  const CollectiveModel model(measured_.cluster, measured_.group);
  const NcclEstimate endless = model.asymptote(measured_.kind);
  asymptotic_ = endless.algorithm;

  const CollectiveSample& last = samples_.back();
  const Seconds latency = model.estimate(measured_.kind, last.size, DataType::kFp32).latency;
  const Seconds moving = std::max(last.time - latency, last.time * 0.5);
  efficiency_ = (last.size / moving) / endless.bandwidth;
}

void CollectiveCurve::make_points() const {
  const CollectiveModel model(measured_.cluster, measured_.group);
  const BytesPerSecond reached = model.asymptote(measured_.kind).bandwidth * efficiency_;
  for (const CollectiveSample& sample : samples_) {
    const NcclEstimate estimate = model.estimate(measured_.kind, sample.size, DataType::kFp32);
    const Seconds rest = sample.time - nominal_time(estimate, reached, sample.size);
    const Bytes step = model.step(measured_.kind, asymptotic_, sample.size);
    points_->by_step.push_back({std::log(step.value()), rest / estimate.steps, estimate.algorithm});
  }
  points_->by_algorithm = points_->by_step;
  std::ranges::stable_sort(points_->by_algorithm, {}, &Point::algorithm);
}

std::span<const CollectiveCurve::Point> CollectiveCurve::points_of(Algorithm algorithm) const {
  std::call_once(points_->made, [&] { make_points(); });
  const std::vector<Point>& all = points_->by_algorithm;
  const auto first = std::ranges::lower_bound(all, algorithm, {}, &Point::algorithm);
  const auto last = std::ranges::upper_bound(all, algorithm, {}, &Point::algorithm);
  if (first == last) return points_->by_step;
  return {&*first, static_cast<std::size_t>(last - first)};
}

Seconds CollectiveCurve::addition(Algorithm algorithm, Bytes step) const {
  return between(points_of(algorithm), std::log(std::max(step.value(), 1e-3)));
}

Seconds CollectiveCurve::between(std::span<const Point> points, double x) {
  if (x < points.front().log_step) {
    // Below the measured range the addition shrinks as it does inside the others, about with the
    // root of the step; noise of a long transfer must not cancel the latency of a short one.
    const Seconds first = std::max(points.front().addition, Seconds());
    return first * std::exp(0.5 * (x - points.front().log_step));
  }
  if (x >= points.back().log_step) return points.back().addition;
  const auto above = std::upper_bound(points.begin(), points.end(), x,
                                      [](double v, const Point& p) { return v < p.log_step; });
  const Point& right = *above;
  const Point& left = *(above - 1);
  const double t = (x - left.log_step) / (right.log_step - left.log_step);
  return left.addition + (right.addition - left.addition) * t;
}

bool CollectiveCurve::holds(Bytes size) const {
  return size.value() >= samples_.front().size.value() &&
         size.value() <= samples_.back().size.value();
}

bool CollectiveCurve::has_sample(Bytes size) const {
  return std::ranges::find(samples_, size, &CollectiveSample::size) != samples_.end();
}

std::optional<CollectiveCurve> CollectiveCurve::without(Bytes size) const {
  std::vector<CollectiveSample> rest = samples_;
  std::erase_if(rest, [&](const CollectiveSample& one) { return one.size == size; });
  if (rest.empty()) return std::nullopt;
  return CollectiveCurve(measured_, std::move(rest));
}

const CollectiveCurve* CollectiveCurves::nearest(const ClusterSpec& cluster,
                                                 const CollectiveModel& model, CollectiveKind kind,
                                                 Algorithm asymptotic) const {
  const CollectiveCurve* best = nullptr;
  double least = kUnrelated;
  for (const CollectiveCurve& curve : curves_) {
    double apart = distance(curve.measured(), cluster, model.group(), kind);
    if (curve.asymptotic() != asymptotic) apart += kOtherAlgorithm;
    if (apart < least) {
      least = apart;
      best = &curve;
    }
  }
  return best;
}

CollectiveCurves::Endless CollectiveCurves::endless(const ClusterSpec& cluster,
                                                    const CollectiveModel& model,
                                                    CollectiveKind kind) const {
  Endless out{model.asymptote(kind), nullptr, {}};
  out.curve = nearest(cluster, model, kind, out.choice.algorithm);
  const double efficiency = out.curve ? out.curve->efficiency() : 1;
  out.reached = {out.choice.bandwidth * efficiency, efficiency};
  if (!goes_round_on_pcie(cluster, model.group(), kind)) return out;
  // PCIe that many share was measured to carry far less than NCCL counts on: the way through
  // a box is no faster for leading to another one.
  const CollectiveModel box = model.inside();
  const BytesPerSecond inside =
      reached(cluster, box, kind).rate *
      (handed_on(kind, box.group().ranks) / handed_on(kind, model.group().ranks));
  if (inside < out.reached.rate) out.reached = {inside, inside / out.choice.bandwidth};
  return out;
}

CurvePrice CollectiveCurves::price(const ClusterSpec& cluster, const CollectiveModel& model,
                                   CollectiveKind kind, Bytes size, DataType type) const {
  const Endless endless = this->endless(cluster, model, kind);
  const CollectiveCurve* curve = endless.curve;
  const BytesPerSecond asymptote = endless.reached.rate;
  const auto time_of = [&](const NcclEstimate& choice, Bytes bytes) {
    const Seconds nominal = nominal_time(choice, asymptote, bytes);
    if (!curve) return nominal;
    const Bytes step = model.step(kind, curve->asymptotic(), bytes);
    const Seconds time = nominal + choice.steps * curve->addition(choice.algorithm, step);
    // The curve of another group may subtract more than the whole time.
    return std::max({time, nominal * 0.5, bytes / asymptote});
  };
  CurvePrice result;
  result.choice = model.estimate(kind, size, type);
  result.asymptote = asymptote;
  result.time = time_of(result.choice, size);
  if (!curve) return result;
  // Samples of two algorithms need not meet, and a message takes no longer than a longer one. That
  // shows where latency counts, across the network.
  constexpr Bytes kLong(64.0 * 1024 * 1024);
  for (Bytes other = size * 2; model.group().domains > 1 && other <= kLong; other = other * 2) {
    result.time = std::min(result.time, time_of(model.estimate(kind, other, type), other));
  }
  result.curve = static_cast<std::int32_t>(curve - curves_.data());
  result.provenance =
      provenance_of(curve->measured(), cluster, model.group(), kind, curve->holds(size));
  return result;
}

Reached CollectiveCurves::reached(const ClusterSpec& cluster, const CollectiveModel& model,
                                  CollectiveKind kind) const {
  return endless(cluster, model, kind).reached;
}

void CollectiveCurves::add(const std::vector<CollectiveCurve>& curves) {
  curves_.insert(curves_.end(), curves.begin(), curves.end());
}

MeasuredGroup read_measured_group(ObjectReader& reader) {
  MeasuredGroup result;
  ClusterSpec& cluster = result.cluster;
  result.id = reader.required_text("id");
  if (const auto architecture = read_architecture(reader)) {
    cluster.accelerator.architecture = *architecture;
  }
  cluster.scale_up = static_cast<ScaleUp>(reader.choice("scale_up", scale_up_names()).value_or(0));
  cluster.scale_up_bandwidth = reader.rate("scale_up_bandwidth").value_or(BytesPerSecond());
  cluster.pcie_bandwidth = reader.rate("pcie_bandwidth").value_or(BytesPerSecond());
  cluster.gpus_per_node = reader.integer("gpus_per_node", 1).value_or(8);
  cluster.nvls = reader.boolean("nvls").value_or(false);
  cluster.cpu =
      static_cast<CpuVendor>(reader.choice("cpu", {"intel", "amd", "nvidia", "other"}).value_or(0));
  cluster.network = network_named(reader.text("network").value_or(""));
  cluster.nics_per_node = reader.integer("nics_per_node", 1).value_or(0);
  cluster.nic_bandwidth = reader.rate("nic").value_or(BytesPerSecond());
  result.kind = static_cast<CollectiveKind>(
      reader.choice("collective", enum_names<CollectiveKind>()).value_or(0));
  GroupShape& group = result.group;
  group.ranks = reader.required_integer("ranks", 2);
  group.domains = reader.required_integer("domains", 1);
  if (group.domains > 0) group.largest = group.smallest = group.ranks / group.domains;
  if (group.domains > 1) {
    // A send uses the NICs beside its GPU, others those beside their members of a node.
    const std::int64_t members = result.kind == CollectiveKind::kSendReceive
                                     ? 1
                                     : std::min(group.largest, cluster.gpus_per_node);
    group.nics = std::max<std::int64_t>(cluster.nics_per_node * members / cluster.gpus_per_node, 1);
  }

  const bool wired = cluster.scale_up == ScaleUp::kPcie ? cluster.pcie_bandwidth.value() > 0
                                                        : cluster.scale_up_bandwidth.value() > 0;
  if (!wired) {
    reader.fail("scale_up", ErrorCode::kMissingKey,
                "a measured group needs the bandwidth between its GPUs",
                "scale_up_bandwidth, or pcie_bandwidth for \"pcie\"");
  }
  if (group.domains > 1 && !(cluster.nic_bandwidth.value() > 0 && cluster.nics_per_node > 0)) {
    reader.fail("nic", ErrorCode::kMissingKey, "a group of several domains needs its network",
                "network, nics_per_node and nic");
  }
  return result;
}

Json to_json(const MeasuredGroup& measured) {
  const ClusterSpec& cluster = measured.cluster;
  const auto rate = [](BytesPerSecond value) {
    return fmt::format("{:.6g} GB/s", value.value() / 1e9);
  };
  Json out = {{"id", measured.id},
              {"architecture", name_of(cluster.accelerator.architecture)},
              {"scale_up", scale_up_names()[static_cast<std::size_t>(cluster.scale_up)]},
              {"scale_up_bandwidth", rate(cluster.scale_up_bandwidth)},
              {"pcie_bandwidth", rate(cluster.pcie_bandwidth)},
              {"gpus_per_node", cluster.gpus_per_node},
              {"nvls", cluster.nvls},
              {"cpu", name_of(cluster.cpu)},
              {"collective", name_of(measured.kind)},
              {"ranks", measured.group.ranks},
              {"domains", measured.group.domains}};
  if (measured.group.domains > 1) {
    out["network"] = cluster.network ? name_of(*cluster.network) : "";
    // In a rack that is one NVLink domain, the NICs of all its nodes count.
    out["nics_per_node"] = cluster.nics_per_node * cluster.nvlink_domain_nodes;
    out["nic"] = rate(cluster.nic_bandwidth);
  }
  return out;
}

std::vector<CollectiveSample> read_collective_samples(const JsonValue& rows, Seconds unit) {
  std::vector<CollectiveSample> result;
  double previous = 0;
  for (const JsonValue& row : rows.items()) {
    const std::vector<JsonValue> pair = row.items();
    if (pair.size() != 2) {
      row.fail(ErrorCode::kBadValue, "a sample is [bytes, time]");
      continue;
    }
    const double size = pair[0].number().value_or(0);
    const double time = pair[1].number().value_or(0);
    if (!(size > previous) || !(time > 0)) {
      row.fail(ErrorCode::kBadValue, "samples go by rising size and take time: " + row.dump());
      continue;
    }
    previous = size;
    result.push_back({Bytes(size), unit * time});
  }
  return result;
}

Result<CollectiveCurves> CollectiveCurves::load(const std::string& file) {
  static RememberedFiles<CollectiveCurves> remembered;
  return remembered.get({file}, [&] { return read(file); });
}

Result<CollectiveCurves> CollectiveCurves::read(const std::string& file) {
  Result<std::unique_ptr<JsonDocument>> document = JsonDocument::load(file);
  if (!document) return tl::unexpected<Errors>(document.error());
  ObjectReader root((*document)->root());
  root.is_format("stepcast_collectives", 1);
  root.ignore("fitted_on");
  root.ignore("rejected");
  root.ignore("convention");
  CollectiveCurves result;
  if (const std::optional<JsonValue> curves = root.required("curves")) {
    const std::vector<JsonValue> values = curves->items();
    result.curves_.reserve(values.size());
    for (const JsonValue& value : values) {
      ObjectReader reader(value);
      MeasuredGroup measured = read_measured_group(reader);
      reader.ignore("launch_us");
      std::vector<CollectiveSample> samples;
      if (const auto rows = reader.required("samples")) {
        samples = read_collective_samples(*rows, Seconds(1e-6));
      }
      reader.finish();
      if ((*document)->ok() && !samples.empty()) {
        result.curves_.emplace_back(std::move(measured), std::move(samples));
      }
    }
  }
  root.finish();
  if (!(*document)->ok()) return failure((*document)->errors());
  return result;
}

}  // namespace stepcast
