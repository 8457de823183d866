// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/shipped.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/fit/check_published.h"
#include "calibrate/fit/fit_expert_products.h"
#include "calibrate/fit/fit_grouped.h"
#include "calibrate/fit/fit_kinds.h"
#include "calibrate/fit/fit_softmax.h"
#include "core/assert.h"
#include "core/statistics.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "cost/profile_curves.h"
#include "layout/choices.h"

namespace stepcast {
namespace {

// GPUs of one model differ by 5 % and more (stas00/ml-engineering@744d01e1 compute/accelerator).
constexpr double kDeviceSpread = 0.03;
// A curve carried to another device of the family: max achievable matmul against training shapes
// agrees between A100 and H100 within this.
constexpr double kCarried = 0.06;

struct FittedAttention {
  AttentionCurve curve;
  FitError stated;  // of sizes that no fit saw, else of points left out
  std::vector<AttentionMeasurement> points;
  std::vector<std::string> sources;
  std::set<std::string> sample_devices;  // of the points that become samples
};

struct FittedGemm {
  const GemmTable* table = nullptr;
  FittedSurface curve;
};

// The products of a step add this to a form.
struct FittedStep {
  const GemmTable* table = nullptr;
  GemmFit fit;
};

struct FittedGrouped {
  const GroupedTable* table = nullptr;
  GroupedCurve curve;
};

class Shipping {
 public:
  Shipping(const Published& published, const std::map<std::string, Accelerator>& accelerators)
      : published_(published), accelerators_(accelerators) {}

  void fit();
  ShippedProfile ship(const DeviceRules& rules) const;

 private:
  const Accelerator& accelerator(const std::string& name) const { return accelerators_.at(name); }
  const DeviceRules* rules_of(const std::string& device) const;
  double scale(const std::string& to, const std::string& from, DataType precision) const;
  double rate_scale(const std::string& to, const std::string& from) const;
  const std::map<std::string, FittedGemm>& gemms_in(DataType precision) const {
    if (precision == DataType::kFp8) return fp8_;
    return precision == DataType::kFp4 ? fp4_ : gemms_;
  }
  void fit_gemms();
  void fit_steps();
  void set_in_step(const std::string& device, GemmFit& fit) const;
  const PaceTable* pace_of(const DeviceRules& rules) const;
  GemmCurve carried(const FittedGemm& fitted, const DeviceRules& rules, CurveNote& note) const;
  double attention_scale(const std::string& to, const std::string& from) const;
  void fit_attention_family(const AttentionFitRule& rule);
  void take_backward(const std::string& device, const FittedAttention& other,
                     FittedAttention& out) const;
  void ship_gemm(const DeviceRules& rules, ShippedProfile& out) const;
  void ship_narrow(const DeviceRules& rules, ShippedProfile& out) const;
  const ExpertProductTable* expert_products_of(const DeviceRules& rules) const;
  void ship_grouped(const DeviceRules& rules, ShippedProfile& out) const;
  void ship_narrow_grouped(const DeviceRules& rules, ShippedProfile& out) const;
  void ship_attention(const DeviceRules& rules, ShippedProfile& out) const;
  void add_attention(const DeviceRules& rules, const AttentionChoice& choice,
                     const AttentionLikeness* likeness, ShippedProfile& out) const;
  void ship_memory(const DeviceRules& rules, ShippedProfile& out) const;

  Published published_;
  const std::map<std::string, Accelerator>& accelerators_;
  std::map<std::string, FittedGemm> gemms_, fp8_, fp4_;  // by device; 16-bit operands, and others
  std::map<std::string, FittedStep> steps_;              // by device of the table
  std::map<std::pair<std::string, DataType>, FittedGrouped> grouped_;  // by device and precision
  std::map<AttentionKey, FittedAttention> attentions_;
  std::map<GpuArchitecture, std::pair<double, std::string>> softmax_;  // factor, source
};

// A first guess near what every tensor-core library shows; the tables move it.
GemmFit first_guess(const DeviceRules* rules) {
  GemmFit guess;
  guess.efficiency = 0.7;
  guess.k_half = 60;
  guess.tile_half = 20;
  guess.wave_weight = 0.5;
  guess.overhead_s = 3e-6;
  guess.sustained_factor = 1.1;
  guess.accumulate_exposed = 0.5;
  // A vocabulary of 50257 instead of 50304 slows GPT-2's step by 25 % (Karpathy, quoted in
  // stas00/ml-engineering@744d01e1 training/performance): the head, a third of it, takes twice as
  // long with rows aligned to 2 bytes instead of 16, 2 = 1.26^3.
  guess.misaligned_factor = 1.26;
  if (rules != nullptr) guess.memory_fraction = rules->stream_fraction;
  return guess;
}

AttentionFit first_attention() {
  AttentionFit guess;
  guess.forward_efficiency = 0.7;
  guess.backward_efficiency = 0.6;
  guess.causal_efficiency = 0.93;
  guess.causal_half_length = 200;
  guess.length_half = guess.backward_length_half = 80;
  guess.blocks_half = guess.backward_blocks_half = 1;
  guess.head_dim_factor = {0.9, 1, 0.95};
  guess.overhead_s = 3e-6;
  return guess;
}

const DeviceRules* Shipping::rules_of(const std::string& device) const {
  const auto found = std::find_if(published_.devices.begin(), published_.devices.end(),
                                  [&](const DeviceRules& rules) { return rules.device == device; });
  return found == published_.devices.end() ? nullptr : &*found;
}

// Rate on `to` over rate on `from` of a power-limited product: N SMs at clock f draw N f^g, so the
// rate N f at power P is N^(1-e) P^e with e = 1/g, fitted to the two devices of the law.
double Shipping::rate_scale(const std::string& to, const std::string& from) const {
  const PowerLaw& law = published_.power_law;
  const Accelerator& slow = accelerator(law.slow_device);
  const Accelerator& fast = accelerator(law.fast_device);
  const auto log_sms = [](const Accelerator& a, const Accelerator& b) {
    return std::log(static_cast<double>(a.sm_count) / static_cast<double>(b.sm_count));
  };
  const auto log_power = [](const Accelerator& a, const Accelerator& b) {
    return std::log(a.power_w / b.power_w);
  };
  const double exponent = (std::log(law.slow / law.fast) - log_sms(slow, fast)) /
                          (log_power(slow, fast) - log_sms(slow, fast));
  const Accelerator& a = accelerator(to);
  const Accelerator& b = accelerator(from);
  return std::exp((1 - exponent) * log_sms(a, b) + exponent * log_power(a, b));
}

// Fraction of the peak on `to` over that on `from`.
double Shipping::scale(const std::string& to, const std::string& from, DataType precision) const {
  if (to == from) return 1;
  const double peak_to = matrix_peak(accelerator(to), precision).value();
  const double peak_from = matrix_peak(accelerator(from), precision).value();
  const DeviceRules* a = rules_of(to);
  const DeviceRules* b = rules_of(from);
  if (a == nullptr || b == nullptr) return 1;
  if (a->power_limited) return rate_scale(to, from) * peak_from / peak_to;
  const auto& max_a = precision == DataType::kFp8 ? a->max_matmul_fp8 : a->max_matmul;
  const auto& max_b = precision == DataType::kFp8 ? b->max_matmul_fp8 : b->max_matmul;
  if (!max_a || !max_b) return 1;
  return (*max_a / peak_to) / (*max_b / peak_from);
}

// Products of a step, table by table: what tells gradients from forward, and how much slower
// products are one after the other than alone.
void Shipping::fit_steps() {
  for (const GemmTable& table : published_.gemm) {
    if (table.scattered || table.short_runs) continue;
    const auto alone = gemms_.find(table.device);
    if (alone == gemms_.end()) {
      gemms_[table.device] = {&table, fit_gemm(accelerator(table.device), table.samples,
                                               first_guess(rules_of(table.device)))};
      gemms_[table.device].curve.samples = table.samples;
      steps_[table.device] = {&table, gemms_[table.device].curve.fit};
    } else {
      steps_[table.device] = {&table, fit_gemm_in_training(accelerator(table.device), table.samples,
                                                           alone->second.curve.fit)};
    }
  }
}

// Long products of a short run meet the power limit; in a step all do.
void Shipping::set_in_step(const std::string& device, GemmFit& fit) const {
  const DeviceRules* rules = rules_of(device);
  fit.back_to_back = fit.sustained_factor;
  const auto step = steps_.find(rules == nullptr ? "" : rules->gemm_roles_from);
  if (step == steps_.end()) return;
  fit.role_factor = step->second.fit.role_factor;
  fit.accumulate_exposed = step->second.fit.accumulate_exposed;
  const auto clock = steps_.find(rules->in_step_from.empty() ? device : rules->in_step_from);
  if (clock != steps_.end()) {
    fit.back_to_back = std::max(fit.sustained_factor, clock->second.fit.back_to_back);
  }
}

// Scales attention, which is not at the power limit where products are: at 300 W the A100-PCIe runs
// its forward pass as fast as the A100-SXM at 400 W.
double Shipping::attention_scale(const std::string& to, const std::string& from) const {
  const DeviceRules* rules = rules_of(to);
  return rules != nullptr && rules->power_limited ? scale(to, from, DataType::kBf16) : 1;
}

void Shipping::fit_gemms() {
  for (const GemmTable& table : published_.gemm) {
    if (!table.short_runs) continue;
    const bool fp8 = table.precision == DataType::kFp8, fp4 = table.precision == DataType::kFp4;
    auto& of_precision = fp8 ? fp8_ : fp4 ? fp4_ : gemms_;
    of_precision[table.device] = {&table, fit_gemm_short_runs(accelerator(table.device), table,
                                                              first_guess(rules_of(table.device)))};
  }
  fit_steps();
  for (auto* of_precision : {&gemms_, &fp8_, &fp4_}) {
    for (auto& [device, fitted] : *of_precision) {
      if (!fitted.table->short_runs) continue;
      set_in_step(device, fitted.curve.fit);
      const double at_limit = fitted.table->at_limit;
      if (at_limit > 0) fitted.curve.fit.back_to_back = at_limit;
    }
  }
  STEPCAST_ASSERT(!steps_.empty(), "one table fixes the shape of the family");
  for (const GemmTable& table : published_.gemm) {
    if (!table.scattered) continue;
    GemmFit start = steps_.begin()->second.fit;
    start.memory_fraction = first_guess(rules_of(table.device)).memory_fraction;
    gemms_[table.device] = {&table, fit_gemm_scattered(accelerator(table.device), table.samples,
                                                       start, table.precision)};
  }
}

// Points of short runs are of the device itself, those of a step of any device with the chip.
void Shipping::fit_attention_family(const AttentionFitRule& rule) {
  const auto& [device, kernel] = rule.fits;
  FittedAttention out;
  const AttentionTable* alone = nullptr;
  for (const AttentionTable& table : published_.attention) {
    if (table.kernel != kernel) continue;
    if (table.short_runs ? table.device != device : !rule.backward_from.empty()) continue;
    if (accelerator(table.device).architecture != accelerator(device).architecture) continue;
    if (table.short_runs) alone = &table;
    const auto points =
        attention_measurements(table, accelerator(device), attention_scale(device, table.device));
    out.points.insert(out.points.end(), points.begin(), points.end());
    out.sources.push_back(table.source);
    for (const AttentionMeasurement& point : points) {
      if (point.pass != AttentionPass::kBoth) out.sample_devices.insert(table.device);
    }
  }
  if (out.points.empty()) return;
  const auto begin = rule.begins_with ? attentions_.find(*rule.begins_with) : attentions_.end();
  const AttentionFit family =
      begin == attentions_.end() ? first_attention() : begin->second.curve.fit;
  if (alone == nullptr) {
    out.curve = fit_attention(accelerator(device), out.points, family);
    out.stated = out.curve.held_out;
  } else {
    out.curve =
        fit_attention_short_runs(accelerator(device), out.points,
                                 held_out_measurements(*alone, accelerator(device)), family);
    out.stated = out.curve.other_sizes;
  }
  const auto other = attentions_.find({rule.backward_from, kernel});
  if (other != attentions_.end()) take_backward(device, other->second, out);
  attentions_[rule.fits] = std::move(out);
}

// Nobody measured a step: the backward pass reaches the other device's share of the peak, at the
// clocks that the device's own products have.
void Shipping::take_backward(const std::string& device, const FittedAttention& other,
                             FittedAttention& out) const {
  AttentionFit& fit = out.curve.fit;
  const AttentionFit& from = other.curve.fit;
  fit.backward_efficiency = from.backward_efficiency;
  fit.backward_length_half = from.backward_length_half;
  fit.backward_blocks_half = from.backward_blocks_half;
  const auto products = gemms_.find(device);
  fit.back_to_back = products == gemms_.end() ? 1 : products->second.curve.fit.back_to_back;
  for (const std::string& source : other.sources) out.sources.push_back(source + " (backward)");
}

void Shipping::fit() {
  for (GemmTable& table : published_.gemm) table = in_fractions(table, accelerator(table.device));
  fit_gemms();
  for (const GroupedTable& table : published_.grouped) {
    const auto& fitted = gemms_in(table.precision);
    const auto dense = fitted.find(table.device);
    if (dense == fitted.end()) continue;
    const FittedSurface& curve = dense->second.curve;
    grouped_[{table.device, table.precision}] = {
        &table, fit_grouped(accelerator(table.device), table, curve.fit, curve.samples)};
  }
  for (const AttentionFitRule& rule : published_.attention_fits) fit_attention_family(rule);
  for (const AttentionTable& table : published_.attention) {
    if (table.kernel != name_of(AttentionKernel::kUnfused)) continue;
    const Accelerator& device = accelerator(table.device);
    const DeviceRules* rules = rules_of(table.device);
    if (rules == nullptr) continue;
    ShippedProfile bare;
    ship_gemm(*rules, bare);
    bare.profile.memory.fraction = rules->stream_fraction;
    bare.profile.memory.overhead_s = rules->interval.value();
    const KernelCosts costs(device, bare.profile, KernelStyle::kFused);
    softmax_[device.architecture] = {
        fit_softmax_factor(costs, attention_measurements(table, device, 1)), table.source};
  }
}

// Its own, else that of the device whose form it takes, unless its power limit is another.
const PaceTable* Shipping::pace_of(const DeviceRules& rules) const {
  const PaceTable* found = nullptr;
  for (const PaceTable& table : published_.paces) {
    if (table.device == rules.device) return &table;
    if (table.device == rules.gemm_from && !rules.power_limited) found = &table;
  }
  return found;
}

// The fitted curve of `fitted` on the device of `rules`, and what is to be said about it.
GemmCurve Shipping::carried(const FittedGemm& fitted, const DeviceRules& rules,
                            CurveNote& note) const {
  const GemmTable& table = *fitted.table;
  const bool own = rules.device == table.device;
  const double factor = scale(rules.device, table.device, table.precision);
  GemmCurve out{fitted.curve.fit, fitted.curve.samples, fitted.curve.neighbourhood};
  out.fit.efficiency *= factor;
  if (!table.short_runs) out.fit.memory_fraction = rules.stream_fraction;
  for (GemmSample& sample : out.samples) sample.efficiency *= factor;
  out.provenance = own ? Provenance::kInterpolated : Provenance::kExtrapolated;
  out.samples_provenance = own ? Provenance::kMeasured : Provenance::kInterpolated;
  note.form = fitted.curve.form;
  note.held_out = table.held_out.empty() ? fitted.curve.held_out : fitted.curve.other_sizes;
  note.cells = fitted.curve.held_out;
  note.provenance = out.provenance;
  note.fitted_on = {table.source};
  if (const PaceTable* pace = pace_of(rules)) {
    out.fit.back_to_back_alone = median(pace->factors);
    note.fitted_on.push_back(pace->source + " (one GPU alone)");
  }
  const auto step = steps_.find(rules.gemm_roles_from);
  if (step != steps_.end()) note.fitted_on.push_back(step->second.table->source + " (gradients)");
  const DeviceRules* measured = rules_of(table.device);
  const auto clock = steps_.find(measured == nullptr ? "" : measured->in_step_from);
  if (clock != steps_.end()) note.fitted_on.push_back(clock->second.table->source + " (in a step)");
  if (!own && rules.power_limited) note.fitted_on.push_back(published_.power_law.source);
  if (factor != 1 && !rules.power_limited) note.fitted_on.push_back(rules.max_matmul_source);
  return out;
}

void Shipping::ship_gemm(const DeviceRules& rules, ShippedProfile& out) const {
  Profile& profile = out.profile;
  CurveNote note{"gemm bf16", {}, {}, {}, Provenance::kDataSheet, {}};
  const auto found = gemms_.find(rules.gemm_from);
  if (found == gemms_.end()) {
    profile.gemm.memory_fraction = rules.stream_fraction;
  } else {
    GemmCurve curve = carried(found->second, rules, note);
    profile.gemm = curve.fit;
    profile.neighbourhood = curve.neighbourhood;
    profile.gemm_samples = std::move(curve.samples);
    profile.gemm_samples_provenance = curve.samples_provenance;
    profile.sigma[static_cast<std::size_t>(Curve::kGemm)] =
        std::hypot(std::max(kDeviceSpread, note.held_out.median),
                   rules.device == rules.gemm_from ? 0 : kCarried);
  }
  profile.provenance = note.provenance;
  out.notes.push_back(std::move(note));
}

void Shipping::ship_narrow(const DeviceRules& rules, ShippedProfile& out) const {
  const auto curve = [&](const char* name, const FittedGemm& fitted) {
    out.notes.push_back({name, {}, {}, {}, Provenance::kDataSheet, {}});
    return carried(fitted, rules, out.notes.back());
  };
  const auto fp8 = fp8_.find(rules.gemm_from), fp4 = fp4_.find(rules.device);
  const bool has_fp8 = accelerator(rules.device).peak(DataType::kFp8).has_value();
  if (fp8 != fp8_.end() && has_fp8) out.profile.gemm_fp8 = curve("gemm fp8", fp8->second);
  if (fp4 != fp4_.end()) {
    out.profile.gemm_fp4 = curve("gemm fp4", fp4->second);
  } else if (fp8 != fp8_.end() && has_fp8 && rules.max_matmul_fp8 && rules.max_matmul_fp4) {
    GemmCurve& alike = out.profile.gemm_fp4.emplace(curve("gemm fp4", fp8->second));
    const Accelerator& own = accelerator(rules.device);
    const double fraction = *rules.max_matmul_fp4 / *rules.max_matmul_fp8 *
                            (matrix_peak(own, DataType::kFp8) / matrix_peak(own, DataType::kFp4));
    alike.fit.efficiency *= fraction;
    for (GemmSample& sample : alike.samples) sample.efficiency *= fraction;
  }
}

// Products of a step, by Transformer Engine, are known of one device of the architecture.
const ExpertProductTable* Shipping::expert_products_of(const DeviceRules& rules) const {
  const GpuArchitecture architecture = accelerator(rules.device).architecture;
  for (const ExpertProductTable& table : published_.expert_products) {
    if (accelerator(table.device).architecture == architecture) return &table;
  }
  return nullptr;
}

// Factors on the device's products, which carry over as they are: of a step where its architecture
// has such a table, else of inference engines.
void Shipping::ship_grouped(const DeviceRules& rules, ShippedProfile& out) const {
  if (const ExpertProductTable* table = expert_products_of(rules)) {
    ShippedProfile measured;
    ship_gemm(*rules_of(table->device), measured);
    const ExpertProductCurve curve =
        fit_expert_products(accelerator(table->device), *table, measured.profile.gemm);
    out.profile.grouped = curve.fit;
    out.profile.grouped_provenance =
        rules.device == table->device ? Provenance::kInterpolated : Provenance::kExtrapolated;
    out.notes.push_back({"grouped gemm",
                         curve.form,
                         curve.held_out,
                         {},
                         out.profile.grouped_provenance,
                         {table->source}});
    return;
  }
  const auto found = grouped_.find({rules.gemm_from, DataType::kBf16});
  if (found == grouped_.end()) return;
  const GroupedCurve& curve = found->second.curve;
  out.profile.grouped = curve.fit;
  out.profile.grouped_provenance =
      rules.device == rules.gemm_from ? Provenance::kInterpolated : Provenance::kExtrapolated;
  out.notes.push_back({"grouped gemm",
                       curve.form,
                       curve.other_models,
                       {},
                       out.profile.grouped_provenance,
                       {found->second.table->source}});
}

// Nobody measured a step's: rates in 8 and 4 bits are those of inference engines, against the
// device's own dense products of that precision.
void Shipping::ship_narrow_grouped(const DeviceRules& rules, ShippedProfile& out) const {
  const auto rate = [&](DataType precision, const char* name) -> double {
    const auto found = grouped_.find({rules.gemm_from, precision});
    if (found == grouped_.end() || !accelerator(rules.device).peak(precision)) return 0;
    const GroupedCurve& curve = found->second.curve;
    out.notes.push_back({name,
                         curve.form,
                         curve.other_models,
                         {},
                         out.profile.grouped_provenance,
                         {found->second.table->source}});
    return curve.fit.rate;
  };
  out.profile.grouped.rate_fp8 = rate(DataType::kFp8, "grouped gemm fp8");
  out.profile.grouped.rate_fp4 = rate(DataType::kFp4, "grouped gemm fp4");
}

void Shipping::ship_attention(const DeviceRules& rules, ShippedProfile& out) const {
  for (const AttentionChoice& choice : rules.attention) {
    add_attention(rules, choice, nullptr, out);
    for (const AttentionLikeness& likeness : published_.attention_like) {
      if (likeness.like == choice.kernel) add_attention(rules, choice, &likeness, out);
    }
  }
}

// The kernel of `choice`, or one that is like it.
void Shipping::add_attention(const DeviceRules& rules, const AttentionChoice& choice,
                             const AttentionLikeness* likeness, ShippedProfile& out) const {
  const auto found = attentions_.find({choice.from, choice.kernel});
  if (found == attentions_.end()) return;
  Profile& profile = out.profile;
  const FittedAttention& fitted = found->second;
  const bool own = rules.device == choice.from && likeness == nullptr;
  const double factor =
      attention_scale(rules.device, choice.from) * (likeness == nullptr ? 1 : likeness->rate);
  AttentionVariant variant;
  variant.name = likeness == nullptr ? choice.kernel : likeness->kernel;
  variant.fit = fitted.curve.fit;
  variant.fit.forward_efficiency *= factor;
  variant.fit.backward_efficiency *= factor;
  variant.provenance = own ? Provenance::kInterpolated : Provenance::kExtrapolated;
  const bool measured_here =
      likeness == nullptr && fitted.sample_devices == std::set<std::string>{rules.device};
  variant.samples_provenance = measured_here ? Provenance::kMeasured : Provenance::kInterpolated;
  variant.samples = fitted.curve.samples;
  for (AttentionSample& sample : variant.samples) sample.efficiency *= factor;
  if (profile.attention_variants.empty()) {
    profile.attention = variant.fit;
    profile.sigma[static_cast<std::size_t>(Curve::kAttention)] =
        std::hypot(std::max(kDeviceSpread, fitted.stated.median), own ? 0 : kCarried);
  }
  CurveNote note{"attention " + variant.name, fitted.curve.form,  fitted.stated,
                 fitted.curve.held_out,       variant.provenance, fitted.sources};
  if (likeness != nullptr) note.fitted_on.push_back(likeness->source);
  out.notes.push_back(std::move(note));
  profile.attention_variants.push_back(std::move(variant));
}

void Shipping::ship_memory(const DeviceRules& rules, ShippedProfile& out) const {
  MemoryFit& fit = out.profile.memory;
  CurveNote note{"memory_bound",
                 {},
                 {},
                 {},
                 Provenance::kInterpolated,
                 {rules.stream_source, rules.interval_source}};
  out.profile.memory_provenance = note.provenance;
  fit.fraction = rules.stream_fraction;
  fit.overhead_s = rules.interval.value();
  const Accelerator& own = accelerator(rules.device);
  const GpuArchitecture architecture = own.architecture;
  for (const KindFactor& factor : published_.kind_factors) {
    if (std::find(factor.architectures.begin(), factor.architectures.end(),
                  name_of(architecture)) == factor.architectures.end()) {
      continue;
    }
    fit.kind_factor[factor.kind] = factor.factor;
    note.fitted_on.push_back(factor.source);
  }
  std::vector<KindPoint> points;
  const bool has_own = std::ranges::any_of(published_.memory, [&](const MemoryTable& table) {
    return table.device == rules.device &&
           std::ranges::any_of(table.points, [](const MemoryPoint& point) {
             return point.in_steps && is_chain(point.kind);
           });
  });
  for (const MemoryTable& table : published_.memory) {
    const DeviceRules* measured = rules_of(table.device);
    const Accelerator& device = accelerator(table.device);
    if (measured == nullptr || device.architecture != architecture) continue;
    if (table.alone && table.device != rules.device) continue;
    const double rate = device.memory_bandwidth.value() * measured->stream_fraction;
    const double faster = own.memory_bandwidth.value() * rules.stream_fraction / rate *
                          static_cast<double>(device.sm_count) / static_cast<double>(own.sm_count);
    for (const MemoryPoint& point : table.points) {
      KindPoint one = kind_point(point, rate, measured->interval.value());
      // The SMs' instructions bound elementwise steps, which reach 0.6 of a Hopper's bandwidth: a
      // device with the same SMs and another memory takes the same time, if its memory allows.
      if (point.in_steps && is_chain(point.kind)) {
        if (has_own && table.device != rules.device) continue;
        one.factor = std::max(std::min(1.0, one.factor), one.factor * faster);
      }
      points.push_back(one);
    }
    note.fitted_on.push_back(table.source);
  }
  note.form = fit_kinds(points, fit);
  const auto softmax = softmax_.find(architecture);
  if (softmax != softmax_.end()) {
    const auto kind = static_cast<std::size_t>(MemoryBoundKind::kSoftmax);
    fit.kind_factor[kind] = fit.step_factor[kind] = softmax->second.first;
    note.fitted_on.push_back(softmax->second.second + " (softmax)");
  }
  out.notes.push_back(std::move(note));
}

ShippedProfile Shipping::ship(const DeviceRules& rules) const {
  const Accelerator& device = accelerator(rules.device);
  ShippedProfile out;
  out.profile = data_sheet_profile(device);
  out.profile.name = out.profile.device = rules.device;
  out.title = device.title;
  out.remark = rules.notes;
  ship_gemm(rules, out);
  ship_narrow(rules, out);
  ship_grouped(rules, out);
  ship_narrow_grouped(rules, out);
  ship_attention(rules, out);
  ship_memory(rules, out);
  std::vector<std::string>& sources = out.profile.fitted_on;
  if (rules.overlap_saving && rules.overlap_channels > 0) {
    // Kernels run at so much less of their rate while the collective does: as if so many SMs were
    // gone.
    const double lost = (1 - *rules.overlap_saving) * static_cast<double>(device.sm_count);
    out.profile.sms_per_channel = lost / rules.overlap_channels;
    sources.push_back(rules.overlap_source);
  }
  for (const CurveNote& note : out.notes) {
    for (const std::string& source : note.fitted_on) {
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
        sources.push_back(source);
      }
    }
  }
  return out;
}

}  // namespace

Result<std::vector<ShippedProfile>> ship_profiles(
    const Published& published, const std::map<std::string, Accelerator>& accelerators) {
  Errors errors = check_published(published, accelerators);
  if (!errors.empty()) return failure(std::move(errors));
  Shipping shipping(published, accelerators);
  shipping.fit();
  std::vector<ShippedProfile> out;
  for (const DeviceRules& rules : published.devices) out.push_back(shipping.ship(rules));
  return out;
}

}  // namespace stepcast
