// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu_measurements.h"

#include <fmt/format.h>

#include <set>
#include "core/row_types.h"

#include "operation/signature.h"

namespace stepcast {
namespace {

constexpr const char* kAgain = "measure it again on a quiet machine";

void check(const std::string& what, const Measurement& measurement, Errors& errors) {
  const bool ordered = measurement.p10_s > 0 && measurement.p10_s <= measurement.median_s &&
                       measurement.median_s <= measurement.p90_s;
  if (measurement.n > 0 && ordered) return;
  errors.push_back(
      {ErrorCode::kBadValue,
       fmt::format("{}: {} samples, {} s (10 %: {} s, 90 %: {} s)", what, measurement.n,
                   measurement.median_s, measurement.p10_s, measurement.p90_s),
       "", "", kAgain});
}

void check(const MeasuredCollective& collective, Errors& errors) {
  if (collective.placement.size() < 2) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("a collective of {} members", collective.placement.size()), "",
                      "", "two or more"});
  }
  std::set<ByteCount> sizes;
  for (const MeasuredCollective::Point& point : collective.points) {
    sizes.insert(point.bytes);
    check(fmt::format("collective of {} bytes", point.bytes), point.measurement, errors);
    if (point.bytes > 0) continue;
    errors.push_back({ErrorCode::kBadValue, fmt::format("a message of {} bytes", point.bytes), "",
                      "", "more than 0"});
  }
  if (sizes.size() < 2) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("a collective measured at {} sizes", sizes.size()), "", "",
                      "two or more, between which others lie"});
  }
}

}  // namespace

Errors check(const CpuMeasurements& measurements) {
  Errors errors;
  for (const MeasuredOperation& measured : measurements.operations) {
    const std::string text = signature(measured.operation);
    check(text, measured.measurement, errors);
    if (!std::holds_alternative<Collective>(measured.operation.work)) continue;
    errors.push_back({ErrorCode::kIllegal, fmt::format("'{}' is no kernel", text), "", "",
                      "collectives are measured as such"});
  }
  for (const MeasuredCollective& collective : measurements.collectives) check(collective, errors);
  return errors;
}

Rows OtherKernel::fields() {
  using F = OtherKernel;
  static constexpr Row all[] = {row<&F::kernel>("kernel").required(),
                                row<&F::measurement>("measurement").required(),
                                row<&F::condition>("condition")};
  return rows_of<F>(all);
}

Rows MeasuredCollective::Point::fields() {
  static constexpr Row all[] = {row<&Point::bytes>("bytes").required().within(1, 1ULL << 40),
                                row<&Point::measurement>("measurement").required()};
  return rows_of<Point>(all);
}

Rows MeasuredCollective::fields() {
  using F = MeasuredCollective;
  static constexpr Row all[] = {row<&F::kind>("collective").required(),
                                row<&F::placement>("placement").required().within(0, kMaxGpus),
                                row<&F::concurrent>("concurrent").required().within(1, kMaxGpus),
                                row<&F::cpu_share>("cpu_share").within(0, 1),
                                row<&F::stretch>("stretch").within(0, kMostStretch),
                                row<&F::points>("points").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
