// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibrate/fit/fit_core_attention.h"
#include "calibrate/fit/fit_gemm.h"
#include "calibrate/fit/fit_grouped_products.h"
#include "calibrate/fit/fit_memory_bound.h"
#include "calibrate/profile_json.h"
#include "cluster/local_cluster.h"
#include "core/json_tree.h"
#include "core/statistics.h"
#include "core/write_rows.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/mpi_curve.h"
#include "cost/profile_curves.h"
#include "cost/sample_table.h"
#include "layout/choices.h"
#include "operation/signature.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewestGemms = 8;  // that all of a form is fitted to
constexpr double kMostDisturbance = 10;
// Means of ten disturbed samples differ by some per cent; a quarter is something else.
constexpr double kMostOfHalves = 1.25;
constexpr double kLeastOfPeak = 1e-6, kMostOfPeak = 10;  // that a sample may have

double spread(const Measurement& measurement) {
  return std::log(measurement.p90_s / measurement.p10_s) / kP10ToP90;
}

bool repeats(const Measurement& measurement) { return measurement.halves <= kMostOfHalves; }

// Rows under their columns, and from how many samples each comes.
template <class Sample>
void add_samples(const std::vector<Sample>& samples, const std::vector<std::int64_t>& counts,
                 Json& out) {
  out["columns"] = sample_columns(Sample::columns());
  out["columns"].push_back("n_samples");
  out["rows"] = Json::array();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Json row = sample_row(Sample::columns(), &samples[i], six_digits);
    row.push_back(counts[i]);
    out["rows"].push_back(std::move(row));
  }
}

class CpuProfiler {
 public:
  CpuProfiler(const CpuMeasurements& measurements, std::string name)
      : in_(measurements),
        accelerator_(cpu_accelerator(measurements.facts, 1)),
        sheet_(data_sheet_profile(accelerator_)) {
    out_.name = std::move(name);
    for (const MeasuredOperation& measured : in_.operations) {
      const auto [known, fresh] = operations_.try_emplace(signature(measured.operation), &measured);
      if (!fresh && measured.measurement.n > known->second->measurement.n) {
        known->second = &measured;
      }
    }
  }

  CpuProfile make() {
    curves_ = Json::array();
    const Provenance provenance = add_gemms();
    add_grouped();
    add_attention();
    add_memory_bound();
    add_exact();
    tell(Curve::kHost, 0, {}, {}, sheet_.sigma[static_cast<std::size_t>(Curve::kHost)]);
    add_collectives(Curve::kCollective);
    add_collectives(Curve::kPointToPoint);
    Json errors = Json::object();
    for (const CpuCurve& curve : out_.curves) errors[curve.name] = rounded(curve.log_error);
    Json root = {{"stepcast_profile", 1},
                 {"name", out_.name},
                 {"device", accelerator_.name},
                 {"machine", machine()},
                 {"host", write_form(in_.host)},
                 {"disturbance", disturbance()},
                 {"provenance", name_of(provenance)},
                 {"log_error", std::move(errors)},
                 {"curves", std::move(curves_)}};
    if (in_.host_memory) root["host_memory"] = json_of(*in_.host_memory);
    out_.text = profile_layout(root);
    return std::move(out_);
  }

 private:
  // Every measurement in which `part` (its work, as a cost sees it) finds something:
  // visit(found, measurement).
  template <class Part, class Visit>
  void for_each(Part part, Visit visit) const {
    for (const auto& [text, measured] : operations_) {
      const auto found = part(measured->operation.work);
      if (found) visit(*found, measured->measurement);
    }
  }

  double fraction_of_peak(double flops, const Measurement& measurement) const {
    return flops / (matrix_peak(accelerator_, DataType::kFp32).value() * measurement.median_s);
  }

  void tell(Curve curve, std::size_t samples, const FitError& form, const FitError& held_out,
            double log_error) {
    out_.curves.push_back({curve_names()[static_cast<std::size_t>(curve)],
                           static_cast<std::int64_t>(samples), form, held_out, log_error});
  }
  // Tells of a fit with its held-out error, or without one with the data sheet's.
  void tell_fit(Curve curve, std::size_t samples, const FitError& form, const FitError& held_out,
                bool has_held_out) {
    tell(curve, samples, form, held_out,
         has_held_out ? log_error_of(held_out) : sheet_.sigma[static_cast<std::size_t>(curve)]);
  }

  Json machine() const;
  double disturbance() const;
  Provenance add_gemms();
  void add_grouped();
  void add_attention();
  void add_memory_bound();
  void add_exact();
  void add_collectives(Curve curve);

  const CpuMeasurements& in_;
  Accelerator accelerator_;
  Profile sheet_;
  std::map<std::string, const MeasuredOperation*> operations_;  // by signature
  GemmFit dense_ = sheet_.gemm;                                 // of products, once they are fitted
  Json curves_;
  CpuProfile out_;
};

Json CpuProfiler::machine() const {
  MachineDescription machine = in_.machine;
  machine.processor = in_.facts.processor;
  machine.cores = static_cast<int>(in_.facts.cores);
  if (!in_.date.empty()) machine.date = in_.date;
  return to_json(machine);
}

// Weighs all kernels that repeat, each by how long it was measured.
double CpuProfiler::disturbance() const {
  double means = 0, medians = 0;
  for (const auto& [text, measured] : operations_) {
    if (!repeats(measured->measurement)) continue;
    const auto n = static_cast<double>(measured->measurement.n);
    means += n * measured->measurement.mean_s;
    medians += n * measured->measurement.median_s;
  }
  return medians > 0 ? rounded(std::clamp(means / medians, 1.0, kMostDisturbance)) : 1;
}

// Other precisions than fp32 run no kernels here: they get the same form.
Provenance CpuProfiler::add_gemms() {
  std::vector<GemmSample> samples;
  std::vector<std::int64_t> counts;  // of what was sampled for each
  for_each(product_of, [&](const Gemm& gemm, const Measurement& measurement) {
    const double fraction = fraction_of_peak(flops_of(gemm), measurement);
    if (gemm.input != DataType::kFp32 || fraction < kLeastOfPeak || fraction > kMostOfPeak) {
      return;
    }
    samples.push_back({gemm.role, gemm.batch, gemm.m, gemm.n, gemm.k, fraction,
                       size_of(gemm.output), gemm.accumulate});
    counts.push_back(measurement.n);
  });
  GemmFit start = sheet_.gemm;
  start.accumulate_exposed = 0.1;
  Json wide = {{"operation", "gemm"}, {"precision", "bf16"}};
  if (samples.empty()) {
    wide["provenance"] = name_of(Provenance::kDataSheet);
    wide["form"] = write_form(sheet_.gemm);
    curves_.push_back(std::move(wide));
    tell_fit(Curve::kGemm, 0, {}, {}, false);
    return Provenance::kDataSheet;
  }
  const bool enough = samples.size() >= kFewestGemms;
  const FittedSurface surface = enough ? fit_gemm_on_core(accelerator_, samples, start)
                                       : scale_gemm(accelerator_, samples, start, DataType::kFp32);
  const Provenance provenance = enough ? Provenance::kInterpolated : Provenance::kExtrapolated;
  wide["provenance"] = name_of(Provenance::kExtrapolated);
  wide["form"] = write_form(surface.fit);
  curves_.push_back(std::move(wide));
  Json table = {{"provenance", name_of(Provenance::kMeasured)},
                {"reach", surface.neighbourhood.reach},
                {"shrinkage", surface.neighbourhood.shrinkage}};
  add_samples(samples, counts, table);
  curves_.push_back({{"operation", "gemm"},
                     {"precision", "fp32"},
                     {"provenance", name_of(provenance)},
                     {"held_out_error", error_json(surface.held_out)},
                     {"form", write_form(surface.fit)},
                     {"samples", std::move(table)}});
  tell_fit(Curve::kGemm, samples.size(), surface.form, surface.held_out, samples.size() > 1);
  dense_ = surface.fit;
  return provenance;
}

// Products of experts run one after the other; the form of the dense ones is theirs too.
void CpuProfiler::add_grouped() {
  std::vector<TimedGroupedGemm> products;
  const auto grouped = [](const Operation::Work& work) { return std::get_if<GroupedGemm>(&work); };
  for_each(grouped, [&](const GroupedGemm& work, const Measurement& measurement) {
    if (work.input == DataType::kFp32) products.push_back({work, measurement.median_s});
  });
  if (products.empty()) return;
  const GroupedProductCurve curve =
      fit_grouped_products(accelerator_, products, [&](DataType) { return dense_; });
  Json out = {{"operation", "grouped_gemm"}, {"provenance", name_of(Provenance::kInterpolated)}};
  if (products.size() > 1) out["held_out_error"] = error_json(curve.held_out);
  out["form"] = write_form(curve.fit);
  curves_.push_back(std::move(out));
}

void CpuProfiler::add_attention() {
  std::vector<AttentionSample> samples;
  std::vector<std::int64_t> counts;
  const auto fused = [](const Operation::Work& work) { return std::get_if<Attention>(&work); };
  for_each(fused, [&](const Attention& a, const Measurement& measurement) {
    const double fraction = fraction_of_peak(flops_of(a), measurement);
    const bool is_odd = fraction < kLeastOfPeak || fraction > kMostOfPeak;
    if (a.type != DataType::kFp32 || a.query_length != a.key_length || !a.is_plain() || is_odd) {
      return;
    }
    samples.push_back(
        {a.backward, a.batch, a.heads, a.kv_heads, a.query_length, a.head_dim, a.causal, fraction});
    counts.push_back(measurement.n);
  });
  Json curve = {{"operation", "attention"},
                {"kernel", "core"},
                {"frameworks", framework_names()},
                {"precision", "fp32"}};
  if (samples.empty()) {
    curve["provenance"] = name_of(Provenance::kDataSheet);
    curve["form"] = write_form(sheet_.attention);
    tell_fit(Curve::kAttention, 0, {}, {}, false);
  } else {
    const AttentionCurve fitted = fit_attention_on_core(accelerator_, samples, sheet_.attention);
    curve["provenance"] = name_of(Provenance::kExtrapolated);  // away from the samples
    curve["held_out_error"] = error_json(fitted.held_out);
    curve["form"] = write_form(fitted.fit);
    curve["samples"] = {{"provenance", name_of(Provenance::kMeasured)}};
    add_samples(samples, counts, curve["samples"]);
    tell_fit(Curve::kAttention, samples.size(), fitted.form, fitted.held_out, samples.size() > 1);
  }
  curves_.push_back(std::move(curve));
}

void CpuProfiler::add_memory_bound() {
  std::vector<TimedKernel> points;
  for_each(memory_bound, [&](const MemoryBound& kernel, const Measurement& measurement) {
    if (kernel.bytes > 0) points.push_back({kernel, measurement.median_s});
  });
  Json curve = {{"operation", "memory_bound"}};
  if (points.empty()) {
    curve["provenance"] = name_of(Provenance::kDataSheet);
    curve["form"] = write_form(sheet_.memory);
    tell_fit(Curve::kMemoryBound, 0, {}, {}, false);
  } else {
    const MemoryCurve fitted = fit_memory_bound(accelerator_, points, sheet_.memory);
    curve["provenance"] = name_of(Provenance::kInterpolated);
    if (fitted.held_out_points > 0) curve["held_out_error"] = error_json(fitted.held_out);
    curve["form"] = write_form(fitted.fit);
    tell_fit(Curve::kMemoryBound, points.size(), fitted.form, fitted.held_out,
             fitted.held_out_points > 0);
  }
  curves_.push_back(std::move(curve));
}

void CpuProfiler::add_exact() {
  Json rows = Json::array();
  std::vector<double> spreads;
  const double others = disturbance();
  for (const auto& [text, measured] : operations_) {
    Measurement m = measured->measurement;
    if (!repeats(m)) {
      out_.unrepeated.push_back(text);
      m.deviation_s *= others * m.median_s / m.mean_s;
      m.mean_s = others * m.median_s;
    }
    spreads.push_back(m.deviation_s / m.mean_s /
                      std::sqrt(static_cast<double>(std::max<std::int64_t>(m.n, 1))));
    rows.push_back({text, six_digits(m.mean_s), six_digits(m.deviation_s), six_digits(m.median_s),
                    six_digits(m.p10_s), six_digits(m.p90_s), m.n, m.rejected.forced_switch,
                    m.rejected.waited, m.rejected.throttled, m.rejected.outlier,
                    name_of(m.stopped)});
  }
  const double log_error = std::clamp(median(spreads), kLeastLogError, kMostLogError);
  tell(Curve::kExact, rows.size(), {}, {}, log_error);
  if (rows.empty()) return;
  curves_.push_back({{"operation", "exact"},
                     {"samples",
                      {{"columns",
                        {"signature", "mean", "deviation", "median", "p10", "p90", "n",
                         "forced_switches", "waited", "throttled", "outliers", "stopped"}},
                       {"rows", std::move(rows)}}}});
}

// One sample per size; where there are two, the one with more measurements.
MpiCurve curve_of(const MeasuredCollective& measured) {
  MpiCurve out;
  out.kind = measured.kind;
  std::map<ByteCount, const Measurement*> by_size;
  for (const MeasuredCollective::Point& point : measured.points) {
    const auto [known, fresh] = by_size.try_emplace(point.bytes, &point.measurement);
    if (!fresh && point.measurement.n > known->second->n) known->second = &point.measurement;
  }
  for (const auto& [bytes, measurement] : by_size) {
    out.samples.push_back({static_cast<double>(bytes), six_digits(measurement->median_s)});
  }
  return out;
}

// Adds the error of each inner size when the other sizes predict it.
void add_held_out(const MpiCurve& curve, std::vector<double>& log_ratios) {
  for (std::size_t i = 1; i + 1 < curve.samples.size(); ++i) {
    MpiCurve others = curve;
    others.samples.erase(others.samples.begin() + static_cast<std::ptrdiff_t>(i));
    const double predicted = others.at(Bytes(curve.samples[i].bytes)).time.value();
    log_ratios.push_back(std::log(predicted / curve.samples[i].seconds));
  }
}

// Either those of groups or those of pairs.
void CpuProfiler::add_collectives(Curve curve) {
  std::vector<double> held_out, spreads;
  for (const MeasuredCollective& measured : in_.collectives) {
    const bool pair = measured.kind == CollectiveKind::kSendReceive;
    if (pair != (curve == Curve::kPointToPoint)) continue;
    const MpiCurve sizes = curve_of(measured);
    add_held_out(sizes, held_out);
    for (const auto& point : measured.points) spreads.push_back(spread(point.measurement));
    Json samples = Json::array();
    for (const MpiCurve::Sample& sample : sizes.samples) {
      samples.push_back({static_cast<std::int64_t>(sample.bytes), sample.seconds});
    }
    curves_.push_back({{"operation", "collective"},
                       {"transport", "mpi"},
                       {"collective", name_of(sizes.kind)},
                       {"ranks", measured.placement.size()},
                       {"placement", measured.placement},
                       {"concurrent", measured.concurrent},
                       {"cpu_share", rounded(std::clamp(measured.cpu_share, 0.0, 1.0))}});
    if (measured.stretch > 0) curves_.back()["stretch"] = rounded(measured.stretch);
    curves_.back()["samples"] = std::move(samples);
  }
  const FitError error = fit_error(held_out);
  const double sheet = sheet_.sigma[static_cast<std::size_t>(curve)];
  tell(curve, spreads.size(), {}, error,
       held_out.empty() ? sheet : std::clamp(median(spreads), log_error_of(error), kMostLogError));
}

}  // namespace

Result<CpuProfile> make_cpu_profile(const CpuMeasurements& measurements, const std::string& name) {
  if (Errors errors = check(measurements); !errors.empty()) return failure(std::move(errors));
  if (measurements.operations.empty() && measurements.collectives.empty()) {
    return failure({ErrorCode::kNotFound, "nothing was measured", "", "",
                    "a profile needs one kernel or collective at least"});
  }
  return CpuProfiler(measurements, name).make();
}

}  // namespace stepcast
