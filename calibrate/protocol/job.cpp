// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/job.h"

#include "core/json_fields.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

const std::vector<std::string>& attention_names() {
  static const std::vector<std::string> names = {"fastest", "atomics", "own", "cudnn"};
  return names;
}

}  // namespace

auto Job::fields() {
  using F = Job;
  const auto run = [](const F& job) { return job.is_run(); };
  const auto calibration = [](const F& job) { return job.is_calibration(); };
  return std::tuple{
      json_field("stepcast_job", &F::format).required().within(1, 1),
      json_field("task", &F::task).required(),
      json_field("scenario", &F::scenario).where(run).required(),
      json_field("scenarios", &F::scenarios).where(calibration).required(),
      json_field("data", &F::data).required(),
      json_field("results", &F::results).required(),
      json_field("gpus", &F::gpus).within(1, ObjectReader::kMaxCount),
      json_field("seed", &F::seed).where(run),
      json_field("backend", &F::backend).where(run),
      json_field("schedule", &F::schedule).where(run).unless_usual(),
      json_field("rank", &F::rank).where(run),
      json_field("warmup", &F::warmup).where(run),
      json_field("steps", &F::steps).where(run).within(1, ObjectReader::kMaxCount),
      json_field("numerics_steps", &F::numerics_steps).where(run),
      json_field("check_numerics", &F::check_numerics).where(run),
      json_field("budget_s", &F::budget_s).where(calibration).within(0, 1e6),
      json_field("target_half_width", &F::target_half_width).where(calibration).within(1e-6, 1),
      json_field("grid", &F::grid).where(calibration),
      json_field("shares_cores", &F::shares_cores).where([](const F& job) {
        return job.is_calibration() && !job.on_gpus();
      }),
      json_field("registered_buffers", &F::registered_buffers).where([](const F& job) {
        return job.is_calibration() && job.on_gpus();
      }),
      json_field("journal", &F::journal).where(calibration),
      json_field("attention", &F::attention).named(attention_names).where([](const F& job) {
        return job.is_run() || job.on_gpus();
      })};
}

Result<Job> read_job(JsonDocument& document) {
  Job job = read_object<Job>(document.root());
  if (!document.ok()) return failure(document.errors());
  return job;
}

Result<Job> load_job(const std::string& file) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  return read_job(**document);
}

std::string job_text(const Job& job) { return json_text(SortedJson(json_of(job)), 2) + "\n"; }

}  // namespace stepcast
