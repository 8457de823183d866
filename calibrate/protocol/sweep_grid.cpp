// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/sweep_grid.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/assert.h"
#include "core/seeded_random.h"

namespace stepcast {
namespace {

// Halton, Numerische Mathematik 2, 1960: the digits of `index` in a base, mirrored at the point.
double radical_inverse(std::int64_t index, std::int64_t base) {
  double out = 0, weight = 1;
  for (; index > 0; index /= base) {
    weight /= static_cast<double>(base);
    out += weight * static_cast<double>(index % base);
  }
  return out;
}

// Points in the unit cube that fill it evenly from the first on, at a random shift (Cranley and
// Patterson, SIAM J. Numer. Anal. 13, 1976). Every second point of a sequence would fill only one
// half of the cube, so shapes that take turns need a sequence each.
class EvenPoints {
 public:
  EvenPoints(std::size_t dimensions, SeededRandom random) {
    for (std::size_t i = 0; i < dimensions; ++i) shift_.push_back(random.uniform());
  }

  std::vector<double> next() {
    constexpr std::int64_t kBases[] = {2, 3, 5, 7, 11, 13};
    ++index_;
    std::vector<double> out;
    for (std::size_t i = 0; i < shift_.size(); ++i) {
      const double value = radical_inverse(index_, kBases[i]) + shift_[i];
      out.push_back(value - std::floor(value));
    }
    return out;
  }
  static constexpr std::size_t kMostDimensions = 6;

 private:
  std::vector<double> shift_;
  std::int64_t index_ = 0;
};

std::int64_t rounded(double value, std::int64_t multiple) {
  if (value < static_cast<double>(multiple)) return std::max<std::int64_t>(1, std::llround(value));
  return multiple * std::max<std::int64_t>(1, std::llround(value / static_cast<double>(multiple)));
}

double product(const SweepShape& shape) {
  double out = 1;
  for (const std::int64_t size : shape) out *= static_cast<double>(size);
  return out;
}

class SweepCells {
 public:
  SweepCells(const std::vector<SweepShape>& needed, const SweepOptions& options)
      : options_(options),
        random_(options.seed, 0),
        between_(needed.front().size(), SeededRandom(options.seed, 1)) {
    for (const SweepShape& shape : needed) {
      STEPCAST_ASSERT(shape.size() == needed.front().size(), "shapes of one curve");
      if (!taken_.insert(shape).second) continue;
      shapes_.push_back(shape);
      around_.emplace_back(shape.size(), SeededRandom(options.seed, 1 + shapes_.size()));
    }
    needed_ = shapes_.size();
  }

  std::vector<SweepShape> extended() {
    // Rounding and the limit refuse some; ten tries for each are enough where there is room at all.
    std::int64_t extra = 0;
    for (std::int64_t i = 0; extra < options_.extra && i < 10 * options_.extra; ++i) {
      const SweepShape shape = i % 2 == 0 || needed_ == 1 ? around(i) : between();
      if (product(shape) > options_.largest_product || !taken_.insert(shape).second) continue;
      shapes_.push_back(shape);
      ++extra;
    }
    return shapes_;
  }

 private:
  SweepShape around(std::int64_t turn) {
    const std::size_t which = static_cast<std::size_t>(turn / 2) % needed_;
    const SweepShape& centre = shapes_[which];
    const std::vector<double> at = around_[which].next();
    std::vector<double> sizes;
    for (std::size_t i = 0; i < centre.size(); ++i) {
      const double octaves = options_.around_octaves * (2 * at[i] - 1);
      sizes.push_back(static_cast<double>(centre[i]) * std::exp2(octaves));
    }
    return whole(sizes);
  }

  // Draws a shape in the box that two needed shapes span.
  SweepShape between() {
    const auto count = static_cast<std::int64_t>(needed_);
    const std::int64_t first = random_.below(count);
    const std::int64_t second = (first + 1 + random_.below(count - 1)) % count;
    // Always from the same end: a sequence and its mirror image together are less even.
    const SweepShape& a = shapes_[static_cast<std::size_t>(std::min(first, second))];
    const SweepShape& b = shapes_[static_cast<std::size_t>(std::max(first, second))];
    const std::vector<double> at = between_.next();
    std::vector<double> sizes;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sizes.push_back(static_cast<double>(a[i]) *
                      std::pow(static_cast<double>(b[i]) / static_cast<double>(a[i]), at[i]));
    }
    return whole(sizes);
  }

  SweepShape whole(const std::vector<double>& sizes) const {
    SweepShape out;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      out.push_back(rounded(sizes[i], options_.multiples.empty() ? 1 : options_.multiples[i]));
    }
    return out;
  }

  const SweepOptions& options_;
  SeededRandom random_;  // which two to go between
  EvenPoints between_;
  std::vector<EvenPoints> around_;  // one for each needed shape
  std::set<SweepShape> taken_;
  std::vector<SweepShape> shapes_;  // the needed ones first
  std::size_t needed_ = 0;
};

}  // namespace

std::vector<SweepShape> sweep_grid(const std::vector<SweepShape>& needed,
                                   const SweepOptions& options) {
  if (needed.empty()) return {};
  STEPCAST_ASSERT(needed.front().size() <= EvenPoints::kMostDimensions, "dimensions of a curve");
  STEPCAST_ASSERT(options.multiples.empty() || options.multiples.size() == needed.front().size(),
                  "a multiple for each dimension");
  return SweepCells(needed, options).extended();
}

}  // namespace stepcast
