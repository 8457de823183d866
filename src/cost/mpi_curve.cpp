// SPDX-License-Identifier: Apache-2.0
#include "cost/mpi_curve.h"
#include "core/enum_names.h"
#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace stepcast {
namespace {

constexpr std::int64_t kMostRanks = 4096;

double slope(const MpiCurve::Sample& a, const MpiCurve::Sample& b) {
  return (b.seconds - a.seconds) / (b.bytes - a.bytes);
}

// Seconds per byte beyond the last sample. Noise may turn the last two round.
double last_slope(const MpiCurve& curve) {
  const MpiCurve::Sample& last = curve.samples.back();
  const double last_two = slope(curve.samples[curve.samples.size() - 2], last);
  return last_two > 0 ? last_two : last.seconds / last.bytes;
}

std::optional<MpiCurve::Sample> read_sample(const JsonValue& item) {
  const std::vector<JsonValue> pair = item.items();
  if (pair.size() != 2) {
    item.fail(ErrorCode::kBadValue, fmt::format("{} is no sample", item.dump()),
              "[bytes, seconds]");
    return std::nullopt;
  }
  const auto bytes = pair[0].number(), seconds = pair[1].number();
  if (!bytes || !seconds) return std::nullopt;
  if (!(*bytes > 0 && *seconds > 0)) {
    item.fail(ErrorCode::kBadValue, fmt::format("{} is out of range", item.dump()), "more than 0");
    return std::nullopt;
  }
  return MpiCurve::Sample{*bytes, *seconds};
}

std::vector<MpiCurve::Sample> read_samples(const JsonValue& list) {
  std::vector<MpiCurve::Sample> out;
  for (const JsonValue& item : list.items()) {
    if (const auto sample = read_sample(item)) out.push_back(*sample);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const auto twice = std::adjacent_find(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes == b.bytes; });
  if (twice != out.end()) {
    list.fail(ErrorCode::kBadValue, fmt::format("{} bytes stand twice", twice->bytes),
              "one sample per size");
    return {};
  }
  if (out.size() < 2) {
    list.fail(ErrorCode::kBadValue, fmt::format("{} usable samples", out.size()),
              "two sizes or more");
    return {};
  }
  return out;
}

}  // namespace

Seconds MpiCurve::latency() const {
  const Sample& first = samples[0];
  const double intercept = first.seconds - first.bytes * slope(first, samples[1]);
  return Seconds(std::clamp(intercept, 0.0, first.seconds));
}

BytesPerSecond MpiCurve::fastest() const {
  const double empty = latency().value();
  double rate = 1 / last_slope(*this);
  for (const Sample& sample : samples) {
    rate = std::max(rate, sample.bytes / sample.seconds);
    const double moving = sample.seconds - empty;
    // For short messages the two times are nearly equal, and their difference says nothing.
    if (moving > sample.seconds / 2) rate = std::max(rate, sample.bytes / moving);
  }
  return BytesPerSecond(rate);
}

BytesPerSecond MpiCurve::sustained() const {
  const Sample& last = samples.back();
  return BytesPerSecond(last.bytes / std::max(last.seconds - latency().value(), last.seconds / 2));
}

MpiCurve::Point MpiCurve::at(Bytes size) const {
  const double bytes = size.value();
  const auto above =
      std::lower_bound(samples.begin(), samples.end(), bytes,
                       [](const Sample& sample, double value) { return sample.bytes < value; });
  if (above == samples.end()) {
    const Sample& last = samples.back();
    return {Seconds(last.seconds + (bytes - last.bytes) * last_slope(*this)),
            Provenance::kExtrapolated};
  }
  if (above->bytes == bytes) return {Seconds(above->seconds), Provenance::kMeasured};
  if (above == samples.begin()) {
    const double empty = latency().value();
    return {Seconds(empty + (above->seconds - empty) * bytes / above->bytes),
            Provenance::kExtrapolated};
  }
  const Sample& below = *(above - 1);
  return {Seconds(below.seconds + (bytes - below.bytes) * slope(below, *above)),
          Provenance::kInterpolated};
}

MpiCurve read_mpi_curve(ObjectReader& reader) {
  MpiCurve out;
  if (reader.required("collective")) {
    out.kind = static_cast<CollectiveKind>(
        reader.choice("collective", enum_names<CollectiveKind>()).value_or(0));
  }
  const std::int64_t ranks = reader.required_integer("ranks", 2, kMostRanks);
  if (const auto placement = reader.required("placement")) {
    for (const JsonValue& node : placement->items()) {
      out.placement.push_back(node.integer().value_or(0));
    }
    if (static_cast<std::int64_t>(out.placement.size()) != ranks) {
      placement->fail(ErrorCode::kIllegal,
                      fmt::format("{} nodes for {} ranks", out.placement.size(), ranks),
                      "the node of each member, in group order");
    }
  }
  out.concurrent = reader.integer("concurrent", 1, kMostRanks).value_or(1);
  out.cpu_share = reader.number("cpu_share", 0, 1).value_or(1);
  out.stretch = reader.number("stretch", 1, kMostStretch).value_or(0);
  if (const auto samples = reader.required("samples")) out.samples = read_samples(*samples);
  return out;
}

}  // namespace stepcast
