// SPDX-License-Identifier: Apache-2.0
#include "predict/orbits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "cluster/cluster.h"

namespace stepcast {
namespace {

std::size_t index_of(std::int64_t place) { return static_cast<std::size_t>(place); }

// Sets that are joined pair by pair; each is known by its lowest member.
class JoinedSets {
 public:
  explicit JoinedSets(std::size_t count) : lowest_(count) {
    std::iota(lowest_.begin(), lowest_.end(), 0);
  }
  void join(std::int32_t a, std::int32_t b) {
    a = find(a);
    b = find(b);
    lowest_[index_of(std::max(a, b))] = std::min(a, b);
  }
  std::int32_t find(std::int32_t member) {
    while (lowest_[index_of(member)] != member) {
      member = lowest_[index_of(member)] = lowest_[index_of(lowest_[index_of(member)])];
    }
    return member;
  }
  std::size_t count() const { return lowest_.size(); }

 private:
  std::vector<std::int32_t> lowest_;
};

// By member: the lowest of its set.
std::vector<std::int32_t> lowest_of(JoinedSets& sets) {
  std::vector<std::int32_t> out(sets.count());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = sets.find(static_cast<std::int32_t>(i));
  return out;
}

// By lowest member: how many members its set has.
std::vector<std::int32_t> sizes_of(const std::vector<std::int32_t>& lowest) {
  std::vector<std::int32_t> out(lowest.size(), 0);
  for (const std::int32_t one : lowest) ++out[index_of(one)];
  return out;
}

// By member: the number of its set. Sets are counted up by their lowest members.
std::vector<std::int32_t> numbers_of(const std::vector<std::int32_t>& lowest) {
  std::vector<std::int32_t> out(lowest.size());
  std::int32_t next = 0;
  for (std::size_t i = 0; i < lowest.size(); ++i) {
    const bool is_lowest = lowest[i] == static_cast<std::int32_t>(i);
    out[i] = is_lowest ? next++ : out[index_of(lowest[i])];
  }
  return out;
}

}  // namespace

Orbits::Orbits(std::int64_t ranks, std::size_t links)
    : links_(links), link_orbits_(static_cast<std::int32_t>(links)) {
  units_.devices = 1;
  units_.count = ranks;
  JoinedSets apart(index_of(ranks)), one(1);
  number_ranks(lowest_of(apart), lowest_of(one));
}

Orbits::Orbits(const RepeatedUnits& units, std::size_t links,
               std::vector<std::shared_ptr<const GraphSymmetry>> symmetries)
    : units_(units),
      links_(links),
      symmetries_(std::move(symmetries)),
      link_orbits_(static_cast<std::int32_t>(links)) {
  JoinedSets alike(index_of(units.count)), devices(index_of(units.devices));
  for (const auto& symmetry : symmetries_) {
    for (std::int32_t u = 0; u < units.count; ++u) alike.join(u, symmetry->unit(u));
    for (std::int32_t d = 0; d < units.devices; ++d) devices.join(d, symmetry->device_in_unit(d));
  }
  const std::vector<std::int32_t> lowest_unit = lowest_of(alike);
  number_ranks(lowest_unit, lowest_of(devices));
  if (!symmetries_.empty()) number_links(lowest_unit);
}

void Orbits::number_ranks(const std::vector<std::int32_t>& lowest_unit,
                          const std::vector<std::int32_t>& lowest_device) {
  unit_orbit_ = numbers_of(lowest_unit);
  device_orbit_ = numbers_of(lowest_device);
  device_count_ = 1 + *std::ranges::max_element(device_orbit_);
  const std::vector<std::int32_t> units = sizes_of(lowest_unit), devices = sizes_of(lowest_device);
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (std::size_t d = 0; units[u] > 0 && d < devices.size(); ++d) {
      if (devices[d] == 0) continue;
      rank_.emplace_back(u * devices.size() + d);
      size_.push_back(std::int64_t{units[u]} * devices[d]);
    }
  }
}

void Orbits::number_links(const std::vector<std::int32_t>& lowest_unit) {
  JoinedSets inside(index_of(units_.links));
  JoinedSets fabric(links_ - index_of(units_.count * units_.links));
  for (const auto& symmetry : symmetries_) {
    for (std::int32_t l = 0; l < units_.links; ++l) inside.join(l, symmetry->link_in_unit(l));
    for (std::size_t l = 0; l < fabric.count(); ++l) {
      fabric.join(static_cast<std::int32_t>(l),
                  static_cast<std::int32_t>(fabric_place(symmetry->fabric_links()[l])));
    }
  }
  const std::vector<std::int32_t> lowest_inside = lowest_of(inside), lowest_out = lowest_of(fabric);
  inside_orbit_ = numbers_of(lowest_inside);
  fabric_orbit_ = numbers_of(lowest_out);
  const auto units = sizes_of(lowest_unit), links = sizes_of(lowest_inside);
  inside_ = 1 + *std::ranges::max_element(inside_orbit_);
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (std::size_t l = 0; units[u] > 0 && l < links.size(); ++l) {
      if (links[l] == 0) continue;
      lowest_link_.emplace_back(index_of(units_.first_link) + u * links.size() + l);
      links_alike_.push_back(double{1} * units[u] * links[l]);
    }
  }
  fabric_ = static_cast<std::int32_t>(lowest_link_.size());
  const auto of_fabric = sizes_of(lowest_out);
  for (std::size_t l = 0; l < of_fabric.size(); ++l) {
    if (of_fabric[l] == 0) continue;
    const auto place = static_cast<std::int64_t>(l);
    const bool is_before = place < units_.first_link;
    lowest_link_.emplace_back(index_of(is_before ? place : place + units_.count * units_.links));
    links_alike_.push_back(of_fabric[l]);
  }
  link_orbits_ = static_cast<std::int32_t>(lowest_link_.size());
}

// Links of the fabric are numbered without those of the units.
std::size_t Orbits::fabric_place(LinkId link) const {
  return index_of(link.value < units_.first_link ? link.value
                                                 : link.value - units_.count * units_.links);
}

std::int32_t Orbits::link_orbit(LinkId link) const {
  if (symmetries_.empty()) return link.value;
  if (!units_.holds(link)) return fabric_ + fabric_orbit_[fabric_place(link)];
  const std::int64_t own = link.value - units_.first_link;
  return unit_orbit_[index_of(own / units_.links)] * inside_ +
         inside_orbit_[index_of(own % units_.links)];
}

LinkId Orbits::lowest_link(std::int32_t orbit) const {
  return symmetries_.empty() ? LinkId(orbit) : lowest_link_[index_of(orbit)];
}

double Orbits::links_alike(std::int32_t orbit) const {
  return symmetries_.empty() ? 1 : links_alike_[index_of(orbit)];
}

RankId Orbits::carried(std::size_t symmetry, RankId rank) const {
  const GraphSymmetry& by = *symmetries_[symmetry];
  const auto devices = static_cast<std::int32_t>(units_.devices);
  return RankId(by.unit(rank.value / devices) * devices + by.device_in_unit(rank.value % devices));
}

Orbits Orbits::without(std::size_t symmetry) const {
  auto left = symmetries_;
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(symmetry));
  return {units_, links_, std::move(left)};
}

namespace {

// One axis of the grid, turned by `step` places in each run of `run` places.
struct Turn {
  std::int64_t stride, run, step;

  std::int64_t operator()(std::int64_t rank) const {
    const std::int64_t place = rank / stride % run;
    return rank + ((place + step) % run - place) * stride;
  }
};

class OrbitFinder {
 public:
  OrbitFinder(const Cluster& cluster, const RankGrid& grid, const RepeatedUnits& units,
              std::span<const AxisGroup> groups)
      : cluster_(cluster), grid_(grid), units_(units), groups_(groups) {}

  Orbits find() {
    for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp}) turn(axis);
    if (found_.empty()) return {grid_.size(), cluster_.topology.links().size()};
    return {units_, cluster_.topology.links().size(), std::move(found_)};
  }

 private:
  void turn(Axis axis) {
    GridPoint next;
    if (axis == Axis::kTp) next.tp = 1;
    if (axis == Axis::kCp) next.cp = 1;
    if (axis == Axis::kDp) next.dp = 1;
    const std::int64_t extent = grid_.group_size(AxisGroup{axis}), devices = units_.devices;
    if (extent < 2) return;
    const std::int64_t stride = grid_.rank(next).value;
    // Inside a unit there are so many places of the axis, and `inside` places are one unit further.
    const std::int64_t inside = stride >= devices ? 1 : std::gcd(devices / stride, extent);
    if (stride < devices ? devices % stride != 0 : stride % devices != 0) return;
    turn_inside({stride, inside, 1});
    if (inside * stride % devices == 0) turn_units({stride, extent, inside});
  }

  void turn_inside(Turn turn) {
    for (; turn.step < turn.run; ++turn.step) {
      if (turn.run % turn.step != 0 || !keeps_groups(turn)) continue;
      std::vector<std::int32_t> to;
      for (std::int64_t d = 0; d < units_.devices; ++d) {
        to.push_back(static_cast<std::int32_t>(turn(d)));
      }
      if (keep(GraphSymmetry::inside_units(cluster_.topology, units_, to))) return;
    }
  }

  void turn_units(Turn turn) {
    const std::int64_t least = turn.step;
    for (; turn.step < turn.run; turn.step += least) {
      if (turn.run % turn.step != 0 || !keeps_groups(turn)) continue;
      std::vector<std::int32_t> to;
      for (std::int64_t u = 0; u < units_.count; ++u) {
        to.push_back(static_cast<std::int32_t>(turn(u * units_.devices) / units_.devices));
      }
      if (keep(GraphSymmetry::of_units(cluster_.topology, units_, std::move(to)))) return;
    }
  }

  bool keep(std::optional<GraphSymmetry> symmetry) {
    if (!symmetry) return false;
    found_.push_back(std::make_shared<const GraphSymmetry>(std::move(*symmetry)));
    return true;
  }

  // Groups of whole dense axes are carried to groups whatever turns: in their order, or where they
  // span the axis, onto themselves. The others are looked at in one stage; all stages are alike.
  bool keeps_groups(const Turn& turn) const {
    return std::ranges::all_of(groups_, [&](AxisGroup group) {
      const bool is_dense = !group.spans(Axis::kEtp) && !group.spans(Axis::kEp) &&
                            !group.spans(Axis::kEdp) && group == group.whole();
      return is_dense || keeps(group, turn);
    });
  }

  bool keeps(AxisGroup group, const Turn& turn) const {
    bool in_order = true, onto_themselves = true;
    std::vector<std::int32_t> to_of(index_of(grid_.group_count(group)), -1);  // by group
    for (std::int64_t r = 0; r < grid_.size() && (in_order || onto_themselves); ++r) {
      const RankId rank(index_of(r)), to(index_of(turn(r)));
      if (grid_.point(rank).pp != 0) continue;
      const std::int32_t own = grid_.group_of(group, rank), other = grid_.group_of(group, to);
      std::int32_t& known = to_of[index_of(own)];
      if (known < 0) known = other;
      in_order =
          in_order && known == other && grid_.place_in(group, to) == grid_.place_in(group, rank);
      onto_themselves = onto_themselves && own == other;
    }
    return in_order || onto_themselves;
  }

  const Cluster& cluster_;
  const RankGrid& grid_;
  const RepeatedUnits& units_;
  std::span<const AxisGroup> groups_;
  std::vector<std::shared_ptr<const GraphSymmetry>> found_;
};

}  // namespace

Orbits find_orbits(const Cluster& cluster, const RankGrid& grid, const RepeatedUnits& units,
                   std::span<const AxisGroup> groups) {
  const bool is_full = units.count * units.devices == grid.size();
  if (units.count == 0 || !is_full) return {grid.size(), cluster.topology.links().size()};
  return OrbitFinder(cluster, grid, units, groups).find();
}

}  // namespace stepcast
