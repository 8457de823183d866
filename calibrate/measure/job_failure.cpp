// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/job_failure.h"

#include <fmt/format.h>

#include <memory>

#include "core/atomic_file.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/machine_errors.h"
#include "core/text/escape.h"
#include "layout/layout.h"
#include "layout/pipeline.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "schedule/schedule.h"

namespace stepcast {

JobFailure::JobFailure(const Errors& errors)
    : JobFailure(of_machine(errors) ? RankFailure::kMachine : RankFailure::kInput,
                 to_string(errors)) {}

Scenario read_job_scenario(const Job& job, const SortedJson& stated) {
  const auto document = JsonDocument::from(stated, "job");
  auto scenario = read_scenario(*document, job.data);
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
