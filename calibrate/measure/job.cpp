// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/job.h"

#include <fmt/format.h>

#include <memory>

#include "core/atomic_file.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/machine_errors.h"
#include "core/text/escape.h"
#include "layout/pipeline.h"

namespace stepcast {

JobFailure::JobFailure(const Errors& errors)
    : JobFailure(of_machine(errors) ? RankFailure::kMachine : RankFailure::kInput,
                 to_string(errors)) {}

Result<Job> load_job(const std::string& file) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  return read_job(**document);
}

Result<Job> read_job(JsonDocument& document) {
  ObjectReader reader(document.root());
  Job job;
  reader.required_integer("stepcast_job", 1);
  job.task = reader.required_text("task");
  if (const auto scenario = reader.value("scenario"))
    job.scenarios.push_back(json_text(scenario->raw()));
  if (const auto scenarios = reader.value("scenarios")) {
    for (const JsonValue& scenario : scenarios->items())
      job.scenarios.push_back(json_text(scenario.raw()));
  }
  if (const auto data = reader.required("data")) {
    ObjectReader folders(*data);
    job.data = {folders.required_text("models"), folders.required_text("topologies"),
                folders.required_text("profiles")};
    folders.finish();
  }
  job.results = reader.required_text("results");
  job.schedule = reader.text("schedule").value_or("");
  if (const auto backend = reader.choice("backend", {"cpu", "cuda"})) {
    job.backend = static_cast<Backend>(*backend);
  }
  job.rank = reader.integer("rank", 0);
  job.seed = static_cast<std::uint64_t>(reader.integer("seed", 0).value_or(1));
  job.warmup = reader.integer("warmup", 0).value_or(job.warmup);
  job.steps = reader.integer("steps", 1).value_or(job.steps);
  job.numerics_steps = reader.integer("numerics_steps", 0).value_or(job.numerics_steps);
  if (reader.boolean("check_numerics") == false || job.rank) job.numerics_steps = 0;
  job.budget_s = reader.number("budget_s", 0, 1e6).value_or(job.budget_s);
  job.target_half_width =
      reader.number("target_half_width", 1e-6, 1).value_or(job.target_half_width);
  job.grid = reader.boolean("grid").value_or(true);
  job.shares_cores = reader.boolean("shares_cores").value_or(false);
  job.gpus = reader.integer("gpus", 1).value_or(job.gpus);
  job.registered_buffers = reader.boolean("registered_buffers").value_or(false);
  job.journal = reader.text("journal").value_or("");
  const std::vector<std::string> attentions = {"fastest", "atomics", "own", "cudnn"};
  if (const auto attention = reader.choice("attention", attentions)) {
    job.attention = attentions[*attention];
  }
  reader.finish();
  if (!document.ok()) return failure(document.errors());
  if (job.scenarios.empty() && job.task != "devices") {
    return failure({ErrorCode::kMissingKey, "there is no scenario", document.file(), "scenario",
                    "\"scenario\", or \"scenarios\" of a calibration"});
  }
  return job;
}

Scenario read_job_scenario(const Job& job, const std::string& text) {
  auto document = JsonDocument::parse(text, "job");
  if (!document) throw JobFailure(document.error());
  auto scenario = read_scenario(**document, job.data);
  if (!scenario) throw JobFailure(scenario.error());
  if (!job.schedule.empty() && scenario->layout.pp > 1) {
    Layout& layout = scenario->layout;
    const auto orders = from_csv(job.schedule, pipeline_of(layout, scenario->micro_batches()), "");
    if (!orders) throw JobFailure(orders.error());
    layout.schedule_text = std::make_shared<const std::string>(job.schedule);
  }
  return std::move(*scenario);
}

void append(Journal& journal, const JournalPoint& point) {
  if (const auto written = journal.append(point); !written) {
    throw JobFailure(written.error());
  }
}

void write_result(const Job& job, int rank, const Json& result) {
  const std::string file = fmt::format("{}/rank-{}.json", job.results, rank);
  if (const auto written = write_file_atomically(file, json_text(result) + "\n"); !written) {
    throw JobFailure(written.error());
  }
}

}  // namespace stepcast
