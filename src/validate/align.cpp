// SPDX-License-Identifier: Apache-2.0
#include "validate/align.h"

#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "core/row_types.h"
#include "layout/scenario.h"
#include "predict/prediction.h"

namespace stepcast {
namespace {

double gpus_of(const Scenario& scenario) { return static_cast<double>(scenario.cluster.gpus()); }

double tokens_of(const Scenario& scenario) {
  return static_cast<double>(scenario.training.global_batch) *
         static_cast<double>(scenario.training.sequence_length);
}

ByteCount memory_of(const Prediction& prediction, Convention::Memory kind) {
  switch (kind) {
    case Convention::Memory::kAllocated:
      return prediction.peak_memory;
    case Convention::Memory::kReserved:
      return prediction.peak_reserved;
    case Convention::Memory::kDevice:
      return prediction.peak_device;
  }
  return 0;
}

// Dense peak of one GPU against which the source states MFU.
std::optional<FlopsPerSecond> convention_peak(const Scenario& scenario,
                                              const Convention& convention) {
  if (convention.peak.rate) return convention.peak.rate;
  const Accelerator& device = scenario.cluster.spec.accelerator;
  return device.peak(convention.peak.bf16 ? DataType::kBf16 : scenario.training.precision);
}

}  // namespace

const char* name_of(Contradiction contradiction) {
  constexpr const char* kNames[] = {"illegal", "does not fit", "fits"};
  return kNames[static_cast<std::size_t>(contradiction)];
}

std::string publisher_of(const std::string& source) {
  static const std::regex repository(
      R"(([A-Za-z0-9][\w.-]*/[A-Za-z][\w-]*?)(_v\d[\w.]*)?(?![\w-]))");
  static const std::regex paper(R"(\b\d{4}\.\d{5}\b)");
  std::smatch found;
  if (std::regex_search(source, found, repository)) return found[1].str();
  return std::regex_search(source, found, paper) ? found[0].str() : "";
}

CaseResult describe(const Suite& suite, const SuiteCase& test_case) {
  CaseResult out;
  out.suite = suite.name;
  out.id = test_case.id;
  out.source = publisher_of(test_case.source);
  out.publisher = test_case.publisher.empty() ? out.source : test_case.publisher;
  out.tags = test_case.tags;
  out.group = test_case.group;
  out.nothing_assumed = test_case.assumed.empty();
  out.measured = test_case.measured;
  out.limits = test_case.limits;
  out.most_step_time_s = test_case.most_step_time_s;
  out.earlier = test_case.earlier;
  out.fingerprint = test_case.fingerprint;
  if (const CollectiveCase& own = test_case.collective; own.ranks > 0) {
    out.collective = {own.kind, own.ranks, own.bytes, own.fabric, own.algorithm(), {}, {}, {}};
  }
  return out;
}

void CaseResult::compare() {
  errors = {};
  covered.reset();
  if (!predicted) return;
  for (const JudgedFigure& figure : judged_figures()) {
    errors.*figure.error = figure.error_of(*predicted, measured);
  }
  if (const auto& t = measured.step_time_s) {
    covered = *t >= *predicted->step_time_low_s && *t <= *predicted->step_time_high_s;
  }
}

Flops convention_flops(const Scenario& scenario, const Convention& convention) {
  const Flops stated = model_flops(scenario, convention.causal_attention, convention.logits);
  if (!convention.hardware_flops) return stated;
  // Recomputed work is the same in every convention: it is the difference between hardware and
  // model FLOPs.
  return stated + (hardware_flops(scenario) - model_flops(scenario));
}

Result<std::optional<double>> measured_step_time(const CaseFigures& measured,
                                                 const Scenario& scenario,
                                                 const Convention& convention) {
  if (measured.step_time_s) return measured.step_time_s;
  const double gpus = gpus_of(scenario);
  if (measured.tokens_per_s_per_gpu) {
    return std::optional(tokens_of(scenario) / (gpus * *measured.tokens_per_s_per_gpu));
  }
  const double flops = convention_flops(scenario, convention).value();
  if (measured.model_tflops_per_gpu) {
    return std::optional(flops / (gpus * *measured.model_tflops_per_gpu * 1e12));
  }
  if (measured.mfu) {
    const auto peak = convention_peak(scenario, convention);
    if (!peak) {
      return failure({ErrorCode::kIllegal,
                      fmt::format("MFU needs the peak of {} on {}, which is not known",
                                  name_of(scenario.training.precision),
                                  scenario.cluster.spec.accelerator.name),
                      "", "measured.mfu", "state convention.peak"});
    }
    return std::optional(flops / (gpus * *measured.mfu * peak->value()));
  }
  return std::optional<double>();
}

void align(CaseResult& result, const Scenario& scenario, const Prediction& prediction,
           const Convention& convention) {
  const auto measured_time = measured_step_time(result.measured, scenario, convention);
  if (!measured_time) {
    result.failed = to_string(measured_time.error().front());
    return;
  }
  result.measured.step_time_s = *measured_time;

  CaseFigures& predicted = result.predicted.emplace();
  const double time = prediction.step_time.value();
  const double gpu_time = time * gpus_of(scenario);
  const double flops = convention_flops(scenario, convention).value();
  predicted.step_time_s = time;
  predicted.step_time_low_s = prediction.step_time_low.value();
  predicted.step_time_high_s = prediction.step_time_high.value();
  predicted.tokens_per_s_per_gpu = tokens_of(scenario) / gpu_time;
  predicted.model_tflops_per_gpu = flops / gpu_time / 1e12;
  if (const auto peak = convention_peak(scenario, convention)) {
    predicted.mfu = flops / gpu_time / peak->value();
  }
  predicted.peak_memory_bytes = static_cast<double>(memory_of(prediction, convention.memory));
  predicted.bubble_fraction =
      convention.steady_bubble ? prediction.bubble_fraction_steady : prediction.bubble_fraction;
  result.compare();
  if (result.measured.out_of_memory) {
    if (prediction.peak_device_high <= prediction.device_memory)
      result.contradiction = Contradiction::kFits;
  } else if (prediction.peak_device_low > prediction.device_memory) {
    result.contradiction = Contradiction::kDoesNotFit;
  }
}

MeasuredErrors errors_by_mechanism(const std::vector<CaseResult>& cases) {
  std::vector<MeasuredError> errors;
  for (const CaseResult& result : cases) {
    if (result.fitted || result.shares_a_source || !result.errors.step_time) continue;
    MeasuredError error{
        result.mechanisms, -std::log1p(*result.errors.step_time), {}, result.publisher};
    error.run = result.suite + "/" + result.id;
    if (const auto& memory = result.errors.peak_memory) {
      error.memory_log_error = -std::log1p(*memory);
    }
    errors.push_back(std::move(error));
  }
  return MeasuredErrors(errors);
}

Rows ComparedCollective::fields() {
  using F = ComparedCollective;
  static constexpr Row all[] = {row<&F::kind>("kind"),
                                row<&F::ranks>("ranks"),
                                row<&F::bytes>("bytes"),
                                row<&F::fabric>("fabric"),
                                row<&F::named_algorithm>("named_algorithm").unless_usual(),
                                row<&F::algorithm>("algorithm").unless_usual(),
                                row<&F::protocol>("protocol").unless_usual(),
                                row<&F::curve>("curve").unless_usual()};
  return rows_of<F>(all);
}

}  // namespace stepcast
