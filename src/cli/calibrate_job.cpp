// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "calibrate/cpu_profile.h"
#include "calibrate/measurement_json.h"
#include "calibrate/operation_json.h"
#include "cli/run_job.h"
#include "core/atomic_file.h"
#include "cost/mpi_curve.h"
#include "launch/host_facts.h"
#include "operation/signature.h"
#include "program/executable.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Scenarios of one number of ranks are measured in one launch.
std::map<std::int64_t, std::vector<json>> by_ranks(const std::vector<std::string>& scenarios,
                                                   const DataFolders& folders, Errors& errors) {
  std::map<std::int64_t, std::vector<json>> out;
  for (const std::string& text : scenarios) {
    json stated = json::parse(text);
    stated.erase("profile");  // it is what this is about to make
    const auto document = JsonDocument::from(stated, "scenario");
    const auto scenario = read_scenario(*document, folders);
    const Errors wrong = scenario ? check_executable(*scenario) : scenario.error();
    errors.insert(errors.end(), wrong.begin(), wrong.end());
    if (wrong.empty()) out[scenario->cluster.gpus()].push_back(std::move(stated));
  }
  return out;
}

json job_of(const CalibrationRequest& request, const std::vector<json>& scenarios,
            std::int64_t ranks, const std::string& folder) {
  const std::string own = fs::absolute(folder).string();
  return {{"stepcast_job", 1},
          {"task", "calibrate"},
          {"scenarios", scenarios},
          {"data", job_folders(request.folders)},
          {"results", own},
          {"journal", own},
          {"budget_s", request.budget_s},
          {"grid", request.grid},
          {"shares_cores", ranks > usable_cores()},
          {"target_half_width", request.target_half_width}};
}

// One kernel that several ranks have measured: the mean of what each of them saw.
MeasuredOperation mean_of_ranks(const std::vector<MeasuredOperation>& all) {
  MeasuredOperation out = all.front();
  Measurement& sum = out.measurement;
  const double part = 1 / static_cast<double>(all.size());
  double variance_s2 = 0;
  sum = {};
  for (const MeasuredOperation& one : all) {
    const Measurement& m = one.measurement;
    sum.median_s += part * m.median_s;
    sum.mean_s += part * m.mean_s;
    sum.p10_s += part * m.p10_s;
    sum.p90_s += part * m.p90_s;
    variance_s2 += part * m.deviation_s * m.deviation_s;
    sum.n += m.n;
    sum.rejected += m.rejected;
    sum.stopped = std::max(sum.stopped, m.stopped);
  }
  sum.deviation_s = std::sqrt(variance_s2);
  return out;
}

// What the ranks wrote. What several launches have measured counts as the last one has.
class RankResults {
 public:
  void begin_launch() { of_this_launch_.clear(); }
  void read(const fs::path& file, Errors& errors) {
    auto document = JsonDocument::load(file.string());
    if (!document) {
      errors.insert(errors.end(), document.error().begin(), document.error().end());
      return;
    }
    ObjectReader root((*document)->root());
    root.ignore("rank");
    if (const auto operations = root.required("operations")) {
      for (const JsonValue& value : operations->items()) read_operation_point(value);
    }
    if (const auto collectives = root.required("collectives")) {
      for (const JsonValue& value : collectives->items()) read_collective(value);
    }
    root.finish();
    const Errors found = (*document)->errors();
    errors.insert(errors.end(), found.begin(), found.end());
  }

  void add_to(CpuMeasurements& out) {
    for (auto& [key, all] : operations_) out.operations.push_back(mean_of_ranks(all));
    for (auto& [key, collective] : collectives_) out.collectives.push_back(std::move(collective));
  }

 private:
  void read_operation_point(const JsonValue& value) {
    ObjectReader reader(value);
    const auto operation = reader.required("operation");
    const auto measurement = reader.required("measurement");
    if (!operation || !measurement) return;
    MeasuredOperation point{read_operation(*operation, names_), read_measurement(*measurement)};
    std::string key = signature(point.operation);
    auto& all = operations_[key];
    if (of_this_launch_.insert(std::move(key)).second) all.clear();
    all.push_back(std::move(point));
    reader.finish();
  }

  void read_collective(const JsonValue& value) {
    ObjectReader reader(value);
    MeasuredCollective out;
    reader.required("collective");
    out.exchange = static_cast<Exchange>(reader.choice("collective", exchange_names()).value_or(0));
    if (const auto placement = reader.required("placement")) {
      for (const JsonValue& node : placement->items()) {
        out.placement.push_back(static_cast<int>(node.number().value_or(0)));
      }
    }
    out.concurrent = static_cast<int>(reader.required_integer("concurrent", 1));
    out.cpu_share = reader.number("cpu_share", 0, 1).value_or(1);
    out.stretch = reader.number("stretch", 0, kMostStretch).value_or(0);
    if (const auto points = reader.required("points")) {
      for (const JsonValue& item : points->items()) {
        ObjectReader point(item);
        const ByteCount bytes = point.required_integer("bytes", 1);
        if (const auto measurement = point.required("measurement")) {
          out.points.push_back({bytes, read_measurement(*measurement)});
        }
        point.finish();
      }
    }
    reader.finish();
    // Groups placed alike are one curve, whatever they are for.
    const std::string key = fmt::format("{} {} {}", static_cast<int>(out.exchange),
                                        json(out.placement).dump(), out.concurrent);
    MeasuredCollective& known = collectives_[key];
    if (of_this_launch_.insert(key).second) {
      known = std::move(out);
    } else {
      known.points.insert(known.points.end(), out.points.begin(), out.points.end());
      if (out.stretch > known.stretch) {  // measured beside kernels, where the other never is
        known.cpu_share = out.cpu_share;
        known.stretch = out.stretch;
      }
    }
  }

  OperationNames names_;
  std::map<std::string, std::vector<MeasuredOperation>> operations_;
  std::map<std::string, MeasuredCollective> collectives_;
  std::set<std::string> of_this_launch_;
};

Error failed_launch(const LaunchOutcome& outcome) {
  return {ErrorCode::kIo, "the calibration: " + outcome.message, "", "--backend",
          "run it again: what is finished is not measured twice"};
}

}  // namespace

Result<std::string> calibrate(const CalibrationRequest& request, const OutputOptions& output) {
  Errors errors;
  const auto launches = by_ranks(request.scenarios, request.folders, errors);
  if (!errors.empty()) return failure(errors);
  if (launches.size() > 1) {
    note(output,
         "warning: scenarios of different numbers of ranks load the machine differently; what they "
         "have in common counts as measured with the most. Profiles of their own know better");
  }
  CpuMeasurements measurements;
  measurements.machine = read_machine_facts({});
  measurements.facts = this_machine();
  RankResults results;
  const fs::path work = request.profile + ".journal";
  for (const auto& [ranks, scenarios] : launches) {
    const fs::path folder = work / fmt::format("{}-ranks", ranks);
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) {
      return failure({ErrorCode::kIo, fmt::format("cannot be made: {}", failed.message()),
                      folder.string(), "-o", "name a profile in a folder that can be written"});
    }
    const auto outcome =
        launch_job(job_of(request, scenarios, ranks, folder.string()).dump(2) + "\n",
                   (folder / "job.json").string(), static_cast<int>(ranks), 0, output);
    if (!outcome) return failure(outcome.error());
    for (const std::string& warning : outcome->warnings) note(output, "warning: " + warning);
    if (!outcome->ok()) return failure({failed_launch(*outcome)});
    results.begin_launch();
    for (std::int64_t r = 0; r < ranks; ++r) {
      results.read(folder / fmt::format("rank-{}.json", r), errors);
    }
  }
  if (!errors.empty()) return failure(errors);
  results.add_to(measurements);
  const auto profile = make_cpu_profile(measurements, fs::path(request.profile).stem().string());
  if (!profile) return failure(profile.error());
  if (auto written = write_cpu_profile(*profile, request.profile); !written) {
    return failure(written.error());
  }
  std::error_code ignored;
  fs::remove_all(work, ignored);
  return request.profile;
}

int report_failed_calibration(const Errors& errors) {
  report_errors(errors);
  return errors.front().code == ErrorCode::kIo ? kInternalError : kUsageError;
}

Result<std::string> calibrate_for(const std::vector<std::string>& scenarios, const DataRoot& data,
                                  const OutputOptions& output, const std::string& profile_path,
                                  double budget_s) {
  CalibrationRequest request;
  request.scenarios = scenarios;
  request.folders = data.folders;
  request.profile = profile_path;
  request.budget_s = budget_s;
  request.grid = false;
  return calibrate(request, output);
}

}  // namespace stepcast::cli
