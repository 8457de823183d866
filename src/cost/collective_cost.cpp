// SPDX-License-Identifier: Apache-2.0
#include "cost/collective_cost.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "cost/collective_curve.h"
#include "cost/collective_group.h"
#include "cost/collective_model.h"
#include "cost/mpi_collectives.h"
#include "operation/message.h"

namespace stepcast {
namespace {

CollectivePrice nothing() {
  CollectivePrice price;
  price.rate_bound = BytesPerSecond(1);
  price.provenance = Provenance::kMeasured;
  return price;
}

// The latency phase is NCCL's own latency; the rest moves the payload, never faster than endless
// messages do.
CollectivePrice split(const CurvePrice& priced, Bytes size, Curve curve) {
  CollectivePrice price;
  const Seconds moving = std::max(size / priced.asymptote, priced.time - priced.choice.latency);
  price.latency = std::max(priced.time - moving, Seconds());
  price.work = size;
  price.rate_bound = size / moving;
  price.channels = priced.choice.channels;
  price.algorithm = priced.choice.algorithm;
  price.protocol = priced.choice.protocol;
  price.curve = curve;
  price.provenance = priced.provenance;
  price.measured = priced.curve;
  return price;
}

}  // namespace

struct CollectiveCosts::Tables {
  Tables(const Cluster& cluster, const ClusterSpec& spec) : links(cluster), tuned_for(spec) {}
  DeviceLinks links;
  const ClusterSpec& tuned_for;
  CollectiveCurves curves;
  Errors errors;
  std::optional<MpiCollectives> mpi;  // of ranks on processors

  // Prices of groups and pairs that lie alike are found once, for several threads.
  std::mutex mutex;
  std::map<std::pair<SendShape, CollectiveKind>, Reached> reached;
  std::map<std::pair<SendShape, ByteCount>, CollectivePrice> sends;
};

namespace {

// The value of a key, made once. Two threads may make it at once, and make the same.
template <class Key, class Value, class Make>
Value remembered(std::mutex& mutex, std::map<Key, Value>& known, const Key& key, const Make& make) {
  {
    const std::scoped_lock lock(mutex);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
  }
  Value made = make();
  const std::scoped_lock lock(mutex);
  known.try_emplace(key, made);
  return made;
}

}  // namespace

CollectiveCosts::CollectiveCosts(const Cluster& cluster, const std::string& profiles_folder,
                                 std::vector<MpiCurve> mpi, std::vector<CollectiveCurve> nccl,
                                 const ClusterSpec* tuned_for)
    : cluster_(cluster),
      tables_(std::make_unique<Tables>(cluster, tuned_for != nullptr ? *tuned_for : cluster.spec)) {
  if (cluster.spec.accelerator.is_cpu()) {
    tables_->mpi.emplace(cluster, std::move(mpi));
    return;
  }
  tables_->curves.add(nccl);
  if (profiles_folder.empty()) return;
  Result<CollectiveCurves> curves = CollectiveCurves::load(profiles_folder + "/collectives.json");
  if (curves) {
    tables_->curves.add(curves->curves());
  } else {
    tables_->errors = std::move(curves.error());
  }
}

CollectiveCosts::~CollectiveCosts() = default;

const Errors& CollectiveCosts::errors() const { return tables_->errors; }

CollectiveModel CollectiveCosts::model_of(const GroupShape& group) const {
  return {cluster_.spec, group, group.domains == 1, tables_->tuned_for};
}

CollectiveCosts::SendShape CollectiveCosts::send_shape(DeviceId from, DeviceId to,
                                                       SendGroup group) const {
  const DeviceLinks& links = tables_->links;
  const bool local = cluster_.domain_of(from) == cluster_.domain_of(to);
  GroupShape shape;
  shape.ranks = std::max<std::int64_t>(group.ranks, 2);
  shape.domains = std::max<std::int64_t>(group.domains, local ? 1 : 2);
  shape.largest = shape.smallest = std::max<std::int64_t>(shape.ranks / shape.domains, 1);
  if (shape.domains > 1) {
    const std::size_t own = links.nics(from).size();
    shape.nics = static_cast<std::int64_t>(std::min(own, links.nics(to).size()));
    if (!local) shape.switch_links = switch_links(cluster_, std::array{from, to});
    if (cluster_.site_of(from) != cluster_.site_of(to)) shape.sites = 2;
  }
  find_what_is_left(links, std::array{from, to}, shape);
  return {shape, local};
}

CollectiveModel CollectiveCosts::send_model(const SendShape& shape) const {
  return {cluster_.spec, shape.group, shape.local, tables_->tuned_for};
}

Reached CollectiveCosts::reached(const SendShape& shape, CollectiveKind kind) const {
  return remembered(tables_->mutex, tables_->reached, {shape, kind}, [&] {
    return tables_->curves.reached(cluster_.spec, send_model(shape), kind);
  });
}

// Exchanges that send copies once have no curves: they are priced by the graph.
namespace {

bool is_slow(const GroupShape& group) {
  return group.scale_up_left < 1 || group.pcie_left < 1 || group.nic_left < 1;
}

// NICs that members of a domain drive where none has failed, if no two share one.
std::int64_t nics_of(const ClusterSpec& cluster, std::int64_t members) {
  return std::min(cluster.nics_per_node * cluster.nvlink_domain_nodes,
                  members * nics_of_gpu(cluster));
}

GroupShape with_at_least(GroupShape group, double left) {
  for (double* one : {&group.scale_up_left, &group.pcie_left, &group.nic_left}) {
    *one = std::max(*one, left);
  }
  return group;
}

// A part that is slow or gone makes nobody faster: neither by a step of NCCL's speeds, nor by
// another curve that is nearer then. `price` of the group is at least that of one with all its
// NICs, and that of one with more of its links left, by tenths.
template <class Price>
CollectivePrice never_faster_with_less(const ClusterSpec& cluster, const GroupShape& group,
                                       const Price& price) {
  CollectivePrice out = price(group);
  const auto compare = [&](const GroupShape& more) {
    const CollectivePrice other = price(more);
    if (other.time() > out.time()) out = other;
  };
  if (!cluster.failed.empty() && group.domains > 1 &&
      group.nics < nics_of(cluster, group.smallest)) {
    GroupShape more = with_at_least(group, 1);
    more.nics = nics_of(cluster, group.smallest);
    compare(more);
  }
  if (!is_slow(group)) return out;
  for (int tenths = 10; tenths > 0; --tenths) {
    const GroupShape more = with_at_least(group, tenths / 10.0);
    if (more == group) break;
    compare(more);
  }
  return out;
}

}  // namespace

CollectivePrice CollectiveCosts::price(const Message& message,
                                       std::span<const DeviceId> members) const {
  if (members.size() < 2 || message.bytes <= 0) return nothing();
  const Bytes size = bytes(message.bytes);
  if (tables_->mpi) return tables_->mpi->price(message.kind, size, members);
  const GroupShape group = shape_of(cluster_, tables_->links, members);
  if (message.kind == CollectiveKind::kSendReceive && members.size() > 2) {
    return price_ring_step(message.bytes, group, members);
  }
  return never_faster_with_less(cluster_.spec, group, [&](const GroupShape& shape) {
    const CollectiveModel model = model_of(shape);
    if (message.copies == 0) {
      const CurvePrice priced =
          tables_->curves.price(cluster_.spec, model, message.kind, size, message.type);
      return split(priced, size, Curve::kCollective);
    }
    const NcclEstimate choice =
        model.exchange_once(message.copies, message.store_sms, message.held_sms);
    CollectivePrice out =
        split({choice, choice.bandwidth, choice.time(size), Provenance::kDataSheet}, size,
              Curve::kCollective);
    out.copies = message.copies;
    return out;
  });
}

// Every member sends to the next: as long as the slowest of these takes, one that leaves a domain
// where there is one.
CollectivePrice CollectiveCosts::price_ring_step(ByteCount count, const GroupShape& group,
                                                 std::span<const DeviceId> members) const {
  std::size_t from = 0;
  const auto next = [&](std::size_t i) { return members[(i + 1) % members.size()]; };
  while (from + 1 < members.size() &&
         cluster_.domain_of(members[from]) == cluster_.domain_of(next(from))) {
    ++from;
  }
  return price_send(count, members[from], next(from), {group.ranks, group.domains});
}

std::string CollectiveCosts::curve_name(const CollectivePrice& price) const {
  if (price.measured < 0) return "";
  return tables_->curves.curves()[static_cast<std::size_t>(price.measured)].measured().id;
}

std::optional<GroupShape> CollectiveCosts::shape(std::span<const DeviceId> members) const {
  if (tables_->mpi) return std::nullopt;
  return shape_of(cluster_, tables_->links, members);
}

CollectivePrice CollectiveCosts::price_send(ByteCount count, DeviceId from, DeviceId to,
                                            SendGroup group) const {
  if (from == to || count <= 0) return nothing();
  if (tables_->mpi) {
    return tables_->mpi->price(CollectiveKind::kSendReceive, bytes(count), std::array{from, to});
  }
  const SendShape shape = send_shape(from, to, group);
  return remembered(tables_->mutex, tables_->sends, {shape, count}, [&] {
    const Bytes size = bytes(count);
    return never_faster_with_less(cluster_.spec, shape.group, [&](const GroupShape& own) {
      const CurvePrice priced =
          tables_->curves.price(cluster_.spec, send_model({own, shape.local}),
                                CollectiveKind::kSendReceive, size, DataType::kBf16);
      return split(priced, size, Curve::kPointToPoint);
    });
  });
}

std::vector<LinkLoad> CollectiveCosts::loads(const CollectivePrice& price, CollectiveKind kind,
                                             std::span<const DeviceId> members) const {
  std::vector<LinkLoad> loads = routed(price, kind, members);
  charge(price, kind, members, loads);
  return loads;
}

std::vector<LinkLoad> CollectiveCosts::routed(const CollectivePrice& price, CollectiveKind kind,
                                              std::span<const DeviceId> members) const {
  if (members.size() < 2) return {};
  if (tables_->mpi) return tables_->mpi->loads(kind, members);
  if (price.copies > 0) return routed_bytes_once(cluster_, price.copies, members);
  return routed_bytes(cluster_, price.algorithm, kind, members);
}

void CollectiveCosts::charge(const CollectivePrice& price, CollectiveKind kind,
                             std::span<const DeviceId> members,
                             std::vector<LinkLoad>& routed) const {
  if (members.size() < 2 || tables_->mpi) return;
  Reached full{price.rate_bound};
  if (price.copies == 0) {
    const GroupShape group = shape_of(cluster_, tables_->links, members);
    full = reached({group, group.domains == 1}, kind);
  }
  charge_protocol(cluster_, full, routed);
}

std::vector<LinkLoad> CollectiveCosts::loads_of_send(DeviceId from, DeviceId to) const {
  if (from == to) return {};
  if (tables_->mpi) return tables_->mpi->loads(CollectiveKind::kSendReceive, std::array{from, to});
  std::vector<LinkLoad> loads = routed_bytes_of_send(cluster_, from, to);
  charge_protocol(cluster_, reached(send_shape(from, to, {}), CollectiveKind::kSendReceive), loads);
  return loads;
}

}  // namespace stepcast
