// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/imported_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/statistics.h"
#include "cost/profile_curves.h"
#include "layout/choices.h"

namespace stepcast {
namespace {

// With fewer samples a form whose whole shape is free would fit their noise, not the device.
constexpr std::size_t kFewestForShape = 40;
// A form that misses half of the samples by more than this is not that of the device's kernels.
constexpr double kWorstFit = 0.5;
// When two samples of one size differ by more than this, something disturbed the slower one.
constexpr double kDisturbed = 1.25;

std::vector<GemmSample> medians(const std::vector<GemmSample>& samples) {
  const auto key = [](const GemmSample& s) {
    return std::tuple(s.role, s.batch, s.m, s.n, s.k, s.output_bytes, s.accumulate);
  };
  std::map<decltype(key(samples.front())), std::vector<GemmSample>> by_shape;
  for (const GemmSample& sample : samples) by_shape[key(sample)].push_back(sample);
  std::vector<GemmSample> out;
  for (const auto& [shape, same] : by_shape) {
    std::vector<double> efficiencies;
    for (const GemmSample& sample : same) efficiencies.push_back(sample.efficiency);
    out.push_back(same.front());
    out.back().efficiency = median(efficiencies);
  }
  return out;
}

std::vector<AttentionMeasurement> medians(const std::vector<AttentionMeasurement>& points) {
  const auto key = [](const AttentionMeasurement& p) {
    const AttentionSample& s = p.sample;
    return std::tuple(p.pass, s.batch, s.heads, s.kv_heads, s.sequence, s.head_dim, s.causal);
  };
  std::map<decltype(key(points.front())), std::vector<AttentionMeasurement>> by_shape;
  for (const AttentionMeasurement& point : points) by_shape[key(point)].push_back(point);
  std::vector<AttentionMeasurement> out;
  for (auto& [shape, same] : by_shape) {
    std::sort(same.begin(), same.end(),
              [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    out.push_back(same[(same.size() - 1) / 2]);
  }
  return out;
}

std::vector<TimedKernel> medians(const std::vector<TimedKernel>& points) {
  std::map<std::tuple<MemoryBoundKind, bool, double>, std::vector<TimedKernel>> by_work;
  for (const TimedKernel& point : points) {
    by_work[{point.kernel.kind, point.kernel.backward, point.kernel.bytes}].push_back(point);
  }
  std::vector<TimedKernel> out;
  for (auto& [work, same] : by_work) {
    std::vector<double> seconds;
    for (const TimedKernel& point : same) seconds.push_back(point.seconds);
    out.push_back({same.front().kernel, median(seconds)});
  }
  return out;
}

// One sample per size: the fastest of runs that waited for others, and otherwise the median of the
// undisturbed samples.
std::vector<CollectiveSample> one_per_size(const ImportedCollective& measured) {
  std::map<double, std::vector<double>> by_size;
  for (const CollectiveSample& sample : measured.samples) {
    by_size[sample.size.value()].push_back(sample.time.value());
  }
  std::vector<CollectiveSample> out;
  for (auto& [size, times] : by_size) {
    const double fastest = *std::min_element(times.begin(), times.end());
    std::erase_if(times, [&](double time) { return time > fastest * kDisturbed; });
    out.push_back({Bytes(size), Seconds(measured.with_waits ? fastest : median(times))});
  }
  return out;
}

class ImportedProfiler {
 public:
  ImportedProfiler(const Imported& imported, const ClusterSpec& cluster, Profile base,
                   const std::string& name)
      : in_(imported), cluster_(cluster), device_(cluster.accelerator) {
    const std::string from = base.file.empty() ? "the data sheet" : base.name;
    out_.profile = std::move(base);
    out_.profile.name = name;
    out_.profile.device = device_.name;
    out_.title = device_.title;
    out_.remark = fmt::format("{}; what was not measured is that of {}",
                              in_.own_run ? "calibrated" : "imported", from);
    if (in_.own_run) {
      const Framework framework = in_.own_run->framework;
      out_.profile.host[framework] = in_.own_run->host;
      out_.profile.own_host[framework] = true;
      out_.machine = in_.own_run->machine;
      if (in_.own_run->host_memory) out_.profile.host_memory = in_.own_run->host_memory;
      if (in_.own_run->sms_per_channel)
        out_.profile.sms_per_channel = *in_.own_run->sms_per_channel;
    }
    keep_notes();
  }

  Result<ShippedProfile> make() {
    add_gemms();
    add_fp8();
    for (const auto& [kernel, points] : in_.attention) {
      std::vector<AttentionMeasurement> in_a_step = medians(points);
      for (AttentionMeasurement& point : in_a_step) {
        const double factor = sustained(attention_kind(point.sample.backward));
        point.seconds *= factor;
        point.sample.efficiency /= factor;
      }
      add_attention(kernel, in_a_step);
    }
    add_grouped();
    add_memory_bound();
    add_collectives();
    if (!errors_.empty()) return failure(std::move(errors_));
    std::vector<std::string>& sources = out_.profile.fitted_on;
    for (const std::string& source : in_.sources) {
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
        sources.push_back(source);
      }
    }
    return std::move(out_);
  }

 private:
  Profile& profile() { return out_.profile; }
  double& sigma(Curve curve) { return profile().sigma[static_cast<std::size_t>(curve)]; }

  // The pace of a step multiplies a measured time by this; 1 if nothing was measured of it.
  double sustained(GpuKernelKind kind) const {
    if (!in_.own_run) return 1;
    const auto found = in_.own_run->sustained.find(kind);
    return found == in_.own_run->sustained.end() ? 1 : found->second;
  }
  std::vector<GemmSample> in_a_step(const std::vector<GemmSample>& samples,
                                    GpuKernelKind kind) const {
    std::vector<GemmSample> out = medians(samples);
    for (GemmSample& sample : out) sample.efficiency /= sustained(kind);
    return out;
  }

  void keep_notes() {
    note("gemm bf16", profile().provenance);
    note("gemm fp8", profile().provenance);
    for (const AttentionVariant& variant : profile().attention_variants) {
      note("attention " + variant.name, variant.provenance);
    }
    note("memory_bound", profile().memory_provenance);
  }
  CurveNote& note(const std::string& operation, Provenance provenance) {
    const auto found = std::find_if(out_.notes.begin(), out_.notes.end(),
                                    [&](const CurveNote& n) { return n.operation == operation; });
    CurveNote& out = found == out_.notes.end() ? out_.notes.emplace_back() : *found;
    out = {operation, {}, {}, {}, provenance, {}};
    return out;
  }
  const FitError& held_out_of(const std::string& operation) {
    return std::ranges::find(out_.notes, operation, &CurveNote::operation)->held_out;
  }
  void note_fit(const std::string& operation, const FitError& form, const FitError& held_out,
                Provenance provenance = Provenance::kInterpolated) {
    // Rows that were measured here are kept with their error; a file's unit may be wrong.
    if (!in_.own_run && form.median > kWorstFit) {
      errors_.push_back(
          {ErrorCode::kBadValue,
           fmt::format("the best form of {} misses half of the rows by {:.0f} % and more",
                       operation, 100 * form.median),
           "", "--import", "check shapes, units and --cluster: at most 50 % is a fit"});
    }
    CurveNote& told = note(operation, provenance);
    told.form = form;
    told.held_out = held_out;
    told.fitted_on = in_.sources;
  }

  // Tables of short runs of one precision as one; none where there are none.
  std::optional<GemmTable> alone(DataType precision) const {
    std::optional<GemmTable> out;
    for (const GemmTable& table : in_.gemms_alone) {
      if (table.precision != precision) continue;
      if (!out) {
        out = table;
        continue;
      }
      out->samples.insert(out->samples.end(), table.samples.begin(), table.samples.end());
      out->held_out.insert(out->held_out.end(), table.held_out.begin(), table.held_out.end());
    }
    return out;
  }

  // Products alone do not show how much longer they take in a step; that stays the base's.
  GemmCurve curve_of(const GemmTable& table, const GemmFit& base, const std::string& operation) {
    GemmFit start = base;
    start.back_to_back = 0;  // each product ran alone
    const FittedSurface surface = fit_gemm_short_runs(device_, table, start);
    GemmCurve out{surface.fit, surface.samples, surface.neighbourhood};
    out.fit.back_to_back = std::max(surface.fit.sustained_factor, base.back_to_back);
    out.provenance = Provenance::kInterpolated;
    out.samples_provenance = Provenance::kMeasured;
    note_fit(operation, surface.form,
             table.held_out.empty() ? surface.held_out : surface.other_sizes);
    return out;
  }

  void add_gemms() {
    const auto table = alone(DataType::kBf16);
    if (table) {
      const GemmCurve curve = curve_of(*table, profile().gemm, "gemm bf16");
      profile().gemm = curve.fit;
      profile().gemm_samples = curve.samples;
      profile().gemm_samples_provenance = curve.samples_provenance;
      profile().neighbourhood = curve.neighbourhood;
      profile().provenance = curve.provenance;
      sigma(Curve::kGemm) = log_error_of(held_out_of("gemm bf16"));
    }
    if (in_.gemms.empty()) return;
    const std::vector<GemmSample> samples = in_a_step(in_.gemms, GpuKernelKind::kGemm);
    if (table) {  // a step's products tell what a step adds
      profile().gemm = fit_gemm_in_training(device_, samples, profile().gemm);
      return;
    }
    profile().gemm.back_to_back = 0;  // these samples are at the pace of a step
    const bool shape = samples.size() >= kFewestForShape;
    const FittedSurface surface =
        shape ? fit_gemm(device_, samples, profile().gemm)
              : scale_gemm(device_, samples, profile().gemm, DataType::kBf16);
    profile().gemm = surface.fit;
    profile().gemm_samples = samples;
    profile().gemm_samples_provenance = Provenance::kMeasured;
    if (shape) profile().neighbourhood = surface.neighbourhood;
    profile().provenance = shape ? Provenance::kInterpolated : Provenance::kExtrapolated;
    note_fit("gemm bf16", surface.form, surface.held_out, profile().provenance);
    if (samples.size() > 1) sigma(Curve::kGemm) = log_error_of(surface.held_out);
  }

  void add_fp8() {
    const auto table = alone(DataType::kFp8);
    if (table) {
      profile().gemm_fp8 = curve_of(*table, profile().gemm_fp8.fit, "gemm fp8");
      return;
    }
    if (in_.gemms_fp8.empty()) return;
    GemmCurve& curve = profile().gemm_fp8;
    curve.fit.back_to_back = 0;
    const std::vector<GemmSample> samples = in_a_step(in_.gemms_fp8, GpuKernelKind::kGemmFp8);
    const FittedSurface surface = fit_gemm_scattered(device_, samples, curve.fit, DataType::kFp8);
    curve.fit = surface.fit;
    note_fit("gemm fp8", surface.form, surface.held_out);
    // Products that were measured on purpose bend the form; those of a trace are of an unknown run.
    if (!in_.own_run) return;
    curve.samples = samples;
    curve.provenance = Provenance::kInterpolated;
    curve.samples_provenance = Provenance::kMeasured;
    curve.neighbourhood.all_roles = false;
  }

  void add_grouped() {
    if (in_.grouped.empty()) return;
    std::vector<TimedGroupedGemm> products = in_.grouped;
    for (TimedGroupedGemm& product : products) {
      product.seconds *= sustained(GpuKernelKind::kGroupedGemm);
    }
    const GroupedProductCurve curve = fit_grouped_products(device_, products, [&](DataType type) {
      return is_scaled(type) ? profile().gemm_fp8.fit : profile().gemm;
    });
    profile().grouped = curve.fit;
    profile().grouped_provenance = Provenance::kInterpolated;
    note_fit("grouped gemm", curve.form, curve.held_out);
  }

  void add_attention(const std::string& kernel, const std::vector<AttentionMeasurement>& points) {
    auto& variants = profile().attention_variants;
    auto variant = std::find_if(variants.begin(), variants.end(),
                                [&](const AttentionVariant& v) { return v.name == kernel; });
    const bool fresh = variant == variants.end();
    if (fresh) {
      AttentionVariant added;
      added.name = kernel;
      added.fit = profile().attention;
      variant = variants.insert(variants.end(), std::move(added));
    }
    const bool alone =
        std::ranges::any_of(points, [](const auto& point) { return point.short_run; });
    const auto unseen = in_.attention_unseen.find(kernel);
    const bool has_unseen =
        alone && unseen != in_.attention_unseen.end() && !unseen->second.empty();
    AttentionCurve curve =
        alone ? fit_attention_short_runs(
                    device_, points,
                    has_unseen ? unseen->second : std::vector<AttentionMeasurement>(), variant->fit)
              : fit_attention(device_, points, variant->fit);
    if (has_unseen) curve.held_out = curve.other_sizes;
    variant->fit = curve.fit;
    variant->provenance = Provenance::kInterpolated;
    variant->samples_provenance = Provenance::kMeasured;
    variant->samples = curve.samples;
    note_fit("attention " + kernel, curve.form, curve.held_out);
    if (in_.own_run) {
      if (kernel == in_.own_run->attention_kernel) {
        profile().attention_kernel[in_.own_run->framework] = kernel;
      }
    } else if (fresh && in_.attention.size() == 1) {
      // If the only imported kernel is unknown to the base, it is the one that was run.
      profile().attention_kernel.fill(kernel);
    }
    const auto& used = profile().attention_kernel;
    const auto names = [&](const std::string& name) {
      return std::ranges::any_of(all_frameworks(),
                                 [&](Framework framework) { return used[framework] == name; });
    };
    // If the profile names none for a framework, a scenario may ask for any.
    const bool in_use = names(kernel) || names("");
    if (in_use && points.size() > 1) sigma(Curve::kAttention) = log_error_of(curve.held_out);
    profile().attention = variants.front().fit;
  }

  void add_memory_bound() {
    if (in_.elementwise.empty()) return;
    std::vector<TimedKernel> kernels = medians(in_.elementwise);
    for (TimedKernel& kernel : kernels) {
      kernel.seconds *= sustained(GpuKernelKind::kMemoryBound);
    }
    const MemoryCurve curve = fit_memory_bound(device_, kernels, profile().memory);
    profile().memory = curve.fit;
    profile().memory_provenance = Provenance::kInterpolated;
    note_fit("memory_bound", curve.form, curve.held_out);
    if (curve.held_out_points > 0) sigma(Curve::kMemoryBound) = log_error_of(curve.held_out);
  }

  void add_collectives() {
    // Runs of one group belong to one curve; those that did not wait tell more than those that did.
    std::map<std::tuple<CollectiveKind, std::int64_t, std::int64_t>, ImportedCollective> groups;
    for (const ImportedCollective& measured : in_.collectives) {
      const auto [known, fresh] =
          groups.try_emplace({measured.kind, measured.ranks, measured.nodes}, measured);
      if (fresh || (measured.with_waits && !known->second.with_waits)) continue;
      if (known->second.with_waits && !measured.with_waits) {
        known->second = measured;
        continue;
      }
      auto& all = known->second.samples;
      all.insert(all.end(), measured.samples.begin(), measured.samples.end());
    }
    for (const auto& [key, measured] : groups) add_collective(measured);
  }

  void add_collective(const ImportedCollective& measured) {
    MeasuredGroup stated;
    stated.id = fmt::format("{}x{}-{}", device_.name, measured.ranks, name_of(measured.kind));
    stated.cluster = cluster_;
    stated.kind = measured.kind;
    stated.group.ranks = measured.ranks;
    stated.group.domains =
        (measured.nodes + cluster_.nvlink_domain_nodes - 1) / cluster_.nvlink_domain_nodes;
    // The group is read back, because the profile's reader will see it so.
    const auto document = JsonDocument::from(SortedJson(to_json(stated)), "--cluster");
    ObjectReader reader(document->root());
    CollectiveTable table;
    table.group = read_measured_group(reader);
    if (!document->ok()) {
      append(errors_, document->errors());
      return;
    }
    table.samples = one_per_size(measured);
    remove_host(table.group, measured.launch, table.samples);
    table.held_out = held_out_sizes(table.group, table.samples);
    profile().nccl.emplace_back(table.group, table.samples);
    out_.collectives.push_back(std::move(table));
  }

  const Imported& in_;
  const ClusterSpec& cluster_;
  const Accelerator& device_;
  ShippedProfile out_;
  Errors errors_;
};

}  // namespace

Result<ShippedProfile> make_imported_profile(const Imported& imported, const ClusterSpec& cluster,
                                             Profile base, const std::string& name) {
  return ImportedProfiler(imported, cluster, std::move(base), name).make();
}

}  // namespace stepcast
