// SPDX-License-Identifier: Apache-2.0
#include "validate/check.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>

#include "cluster/cluster.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/machine_errors.h"
#include "core/parallel.h"
#include "cost/profile.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "predict/choose_profile.h"
#include "predict/mechanisms.h"
#include "predict/prediction.h"
#include "validate/collective_forecast.h"

namespace stepcast {
namespace {

// Whether the profile that prices the scenario was fitted on this case.
bool is_fitted(const Profile& profile, const CaseResult& result) {
  return std::ranges::any_of(profile.fitted_on, [&](const std::string& id) {
    return id == result.id || id == result.suite + "/" + result.id;
  });
}

// Kernels measured on the machine whose steps are to be forecast prove nothing a second time.
bool shares_a_source(const Profile& profile, const CaseResult& result) {
  return !result.source.empty() &&
         std::ranges::any_of(profile.fitted_on, [&](const std::string& text) {
           return publisher_of(text) == result.source;
         });
}

std::string reason_of(const Errors& errors) {
  std::string out;
  for (Error error : errors) {
    error.file.clear();
    if (!out.empty()) out += "; ";
    out += to_string(error);
  }
  return out;
}

// Returns the errors that the case is not to blame for.
Errors fail(CaseResult& result, const Errors& errors) {
  result.failed = reason_of(errors);
  const bool illegal = std::any_of(errors.begin(), errors.end(), [](const Error& error) {
    return error.code == ErrorCode::kIllegal;
  });
  if (illegal) result.contradiction = Contradiction::kIllegal;
  result.not_supported = std::all_of(errors.begin(), errors.end(), [](const Error& error) {
    return error.code == ErrorCode::kNotSupported;
  });
  return refused_by_machine(errors);
}

Errors predict_case(const Suite& suite, const SuiteCase& test_case, const DataFolders& folders,
                    const CheckOptions& options, CaseResult& result) {
  result = describe(suite, test_case);
  const auto document = JsonDocument::from(test_case.scenario, suite.file);
  const auto scenario = read_scenario(*document, folders);
  if (!scenario) return fail(result, scenario.error());
  result.work = work_of(*scenario);
  const auto profile = choose_profile(*scenario, folders);
  if (!profile) return fail(result, profile.error());
  result.fitted = is_fitted(*profile, result);
  result.shares_a_source = shares_a_source(*profile, result);
  PredictOptions predict_options;
  predict_options.fold = options.fold;
  predict_options.stop = options.stop;
  if (options.publisher_left_out) predict_options.without_errors_of = result.publisher;
  const auto prediction = predict(*scenario, folders, predict_options);
  if (!prediction) {
    if (prediction.error().empty()) return {};  // it was stopped
    return fail(result, prediction.error());
  }
  result.mechanisms = mechanisms_of(*scenario);
  align(result, *scenario, *prediction, test_case.convention);
  return {};
}

// Curves that were made of what the publisher measured.
std::vector<std::string> tables_of(const std::string& publisher, const std::vector<Suite>& suites) {
  std::vector<std::string> out;
  for (const Suite& suite : suites) {
    for (const SuiteCase& one : suite.cases) {
      if (one.publisher == publisher && !one.collective.table.empty()) {
        out.push_back(one.collective.table);
      }
    }
  }
  return out;
}

Errors price_collective(const Suite& suite, const SuiteCase& test_case, const DataFolders& folders,
                        const CollectiveCurves& curves, const std::vector<std::string>& left_out,
                        CaseResult& result) {
  result = describe(suite, test_case);
  const CollectiveCase& own = test_case.collective;
  const auto document = JsonDocument::from(test_case.scenario, suite.file);
  const auto cluster = read_collective_scenario(*document, folders);
  if (!cluster) return fail(result, cluster.error());
  auto others = curves_without(curves.curves(), own.table, own.bytes, left_out);
  if (!others) return fail(result, others.error());
  const auto forecast = forecast_collective(own, *cluster, std::move(*others));
  if (!forecast) return fail(result, forecast.error());
  result.predicted = CaseFigures{.collective_time_s = forecast->time.value()};
  result.collective->algorithm = forecast->algorithm;
  result.collective->protocol = forecast->protocol;
  result.collective->curve = forecast->curve;
  result.compare();
  return {};
}

struct Job {
  const Suite* suite;
  const SuiteCase* test_case;
};

}  // namespace

CheckReport check(const std::vector<Suite>& suites, const DataFolders& folders,
                  const CheckOptions& options) {
  std::vector<Job> jobs;
  for (const Suite& suite : suites) {
    for (const SuiteCase& test_case : suite.cases) jobs.push_back({&suite, &test_case});
  }
  CheckReport report;
  report.cases.resize(jobs.size());
  std::atomic<std::size_t> done = 0;
  std::vector<Errors> refused(jobs.size());
  const bool has_collectives =
      std::ranges::any_of(jobs, [](const Job& job) { return job.test_case->collective.ranks > 0; });
  const auto curves = has_collectives
                          ? CollectiveCurves::load(folders.profiles + "/collectives.json")
                          : Result<CollectiveCurves>();
  const auto predict_one = [&](std::size_t, std::size_t i) {
    CaseResult& result = report.cases[i];
    try {
      const SuiteCase& one = *jobs[i].test_case;
      if (one.collective.ranks > 0) {
        const auto left_out = options.publisher_left_out ? tables_of(one.publisher, suites)
                                                         : std::vector<std::string>();
        refused[i] = curves
                         ? price_collective(*jobs[i].suite, one, folders, *curves, left_out, result)
                         : curves.error();
      } else {
        refused[i] = predict_case(*jobs[i].suite, one, folders, options, result);
      }
    } catch (const std::bad_alloc&) {
      throw;  // no fault of the case either
    } catch (const std::exception& error) {
      // An exception in one case must not end the others.
      result.failed = std::string("internal error: ") + error.what();
    }
    if (options.progress) options.progress(++done, jobs.size());
  };
  run_in_parallel(options.threads, jobs.size(), predict_one, options.stop);
  for (const Errors& errors : refused) add_new(errors, report.refused);
  report.summary = summarise(report.cases);
  return report;
}

}  // namespace stepcast
