// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/job.h"

#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/text/escape.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

const std::vector<std::string>& attention_names() {
  static const std::vector<std::string> names = {"fastest", "atomics", "own", "cudnn"};
  return names;
}

}  // namespace

Rows Job::fields() {
  using F = Job;
  constexpr auto run = [](const F& job) { return job.is_run(); };
  constexpr auto calibration = [](const F& job) { return job.is_calibration(); };
  static constexpr Row all[] = {
      row<&F::format>("stepcast_job").required().within(1, 1),
      row<&F::task>("task").required(),
      row<&F::scenario>("scenario").where<F>(run).required(),
      row<&F::scenarios>("scenarios").where<F>(calibration).required(),
      row<&F::data>("data").required(),
      row<&F::results>("results").required(),
      row<&F::gpus>("gpus").within(1, ObjectReader::kMaxCount),
      row<&F::seed>("seed").where<F>(run),
      row<&F::backend>("backend").where<F>(run),
      row<&F::schedule>("schedule").where<F>(run).unless_usual(),
      row<&F::rank>("rank").where<F>(run),
      row<&F::warmup>("warmup").where<F>(run),
      row<&F::steps>("steps").where<F>(run).within(1, ObjectReader::kMaxCount),
      row<&F::numerics_steps>("numerics_steps").where<F>(run),
      row<&F::check_numerics>("check_numerics").where<F>(run),
      row<&F::budget_s>("budget_s").where<F>(calibration).within(0, 1e6),
      row<&F::target_half_width>("target_half_width").where<F>(calibration).within(1e-6, 1),
      row<&F::grid>("grid").where<F>(calibration),
      row<&F::shares_cores>("shares_cores").where<F>([](const F& job) {
        return job.is_calibration() && !job.on_gpus();
      }),
      row<&F::registered_buffers>("registered_buffers").where<F>([](const F& job) {
        return job.is_calibration() && job.on_gpus();
      }),
      row<&F::journal>("journal").where<F>(calibration),
      row<&F::attention>("attention").named(attention_names).where<F>([](const F& job) {
        return job.is_run() || job.on_gpus();
      })};
  return rows_of<F>(all);
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
