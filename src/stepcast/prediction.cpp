// SPDX-License-Identifier: Apache-2.0
#include "stepcast/prediction.h"

#include <optional>

#include "core/work_limits.h"
#include "cost/profile.h"
#include "layout/scenario.h"
#include "plan/offers/layout_ranking.h"
#include "plan/what_if.h"
#include "predict/choose_profile.h"
#include "predict/measured_errors.h"
#include "predict/prediction.h"
#include "report/forecast_report.h"
#include "report/memory_timeline.h"
#include "report/prediction_table.h"
#include "report/trace.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/read_scenario.h"

namespace stepcast::api {

struct Prediction::Made {
  stepcast::Scenario scenario;
  stepcast::Prediction prediction;
  std::optional<RunOutlook> run;
  RecordedRuns recorded;
  std::optional<Profile> profile;
  std::uint64_t seed = 0;
  bool timeline = false;
  bool pictures = false;

  ForecastReport report() const {
    return {.scenario = scenario,
            .prediction = prediction,
            .run = run,
            .recorded = recorded,
            .explained = profile ? &*profile : nullptr,
            .seed = seed};
  }
};

namespace {

stepcast::PredictOptions options_of(const PredictOptions& options) {
  stepcast::PredictOptions out;
  out.fold = !options.unfolded;
  out.trace = options.timeline || options.pictures;
  out.kernels = options.timeline;
  out.collectives = true;
  out.contention = options.contention;
  out.flops = options.causal_flops ? FlopCount::kCausal : FlopCount::kFull;
  out.stop = options.stop;
  return out;
}

Errors without(const std::string& option) {
  return {{ErrorCode::kMissingKey, "the forecast was made without " + option, "", option,
           "PredictOptions::" + option}};
}

}  // namespace

bool Prediction::fits() const { return made_->prediction.fits; }
Seconds Prediction::step_time() const { return made_->prediction.step_time; }
Seconds Prediction::step_time_low() const { return made_->prediction.step_time_low; }
Seconds Prediction::step_time_high() const { return made_->prediction.step_time_high; }
double Prediction::tokens_per_s() const { return made_->prediction.tokens_per_s; }
double Prediction::mfu() const { return made_->prediction.mfu; }
double Prediction::bubble_fraction() const { return made_->prediction.bubble_fraction; }
ByteCount Prediction::peak_memory() const { return made_->prediction.peak_device; }

std::string Prediction::json() const { return forecast_json(made_->report()); }
std::string Prediction::csv() const { return forecast_csv(made_->report()); }
std::string Prediction::text() const { return forecast_text(made_->report(), Form::kText); }
std::string Prediction::markdown() const { return forecast_text(made_->report(), Form::kMarkdown); }

Result<std::string> Prediction::html() const {
  if (!made_->timeline) return failure(without("timeline"));
  return prediction_html(made_->scenario, made_->prediction, made_->run ? &*made_->run : nullptr,
                         made_->recorded)
      .text();
}

Result<std::string> Prediction::pictures() const {
  if (!made_->timeline && !made_->pictures) return failure(without("pictures"));
  return prediction_pictures(made_->scenario, made_->prediction,
                             made_->run ? &*made_->run : nullptr)
      .text();
}

Result<std::string> Prediction::trace() const {
  if (!made_->timeline) return failure(without("timeline"));
  return trace_json(made_->scenario, made_->prediction).text();
}

Result<std::string> Prediction::memory_timeline() const {
  if (!made_->timeline) return failure(without("timeline"));
  return memory_timeline_json(made_->prediction).text();
}

namespace {

Result<Prediction> whole_prediction(const Scenario& scenario, const PredictOptions& options) {
  const DataRoot& data = scenario.data().root();
  auto read_one = apply_what_ifs(read(scenario), options.what_if, data.folders);
  if (!read_one) return failure(read_one.error());
  auto prediction = stepcast::predict(*read_one, data.folders, options_of(options));
  if (!prediction) return failure(prediction.error());
  const auto run =
      outlook_of(*read_one, *prediction, PriceFiles{data.prices.folder, options.prices});
  if (!run) return failure(run.error());
  const auto measured = MeasuredErrors::read(data.folders.profiles);
  if (!measured) return failure(measured.error());
  std::optional<Profile> profile;
  if (options.explain) {
    auto chosen = choose_profile(*read_one, data.folders);
    if (!chosen) return failure(chosen.error());
    profile = std::move(*chosen);
  }
  auto recorded = recorded_runs(*read_one, *measured);
  return Prediction(std::make_shared<const Prediction::Made>(
      Prediction::Made{std::move(*read_one), std::move(*prediction), *run, std::move(recorded),
                       std::move(profile), options.seed, options.timeline, options.pictures}));
}

}  // namespace

Result<Prediction> predict(const Scenario& scenario, const PredictOptions& options) {
  const StopScope scope(options.stop);
  try {
    return whole_prediction(scenario, options);
  } catch (const Stopped&) {
    return failure(Errors{});
  }
}

}  // namespace stepcast::api
