// SPDX-License-Identifier: Apache-2.0
#include "validate/check.h"

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <set>

#include "core/json.h"
#include "core/parallel.h"
#include "cost/profile.h"

namespace stepcast {
namespace {

// What the profiles were fitted on, each profile read once.
class FittedOn {
 public:
  explicit FittedOn(std::string folder) : folder_(std::move(folder)) {}

  bool contains(const Scenario& scenario, const CaseResult& result) {
    const std::string name =
        scenario.profile.empty() ? scenario.cluster.spec.accelerator.profile : scenario.profile;
    if (name.empty() || name == "none") return false;
    const std::scoped_lock lock(mutex_);
    auto found = lists_.find(name);
    if (found == lists_.end()) found = lists_.emplace(name, read(name)).first;
    return found->second.contains(result.id) ||
           found->second.contains(result.suite + "/" + result.id);
  }

 private:
  std::set<std::string> read(const std::string& name) const {
    const auto profile = load_profile(name, folder_);
    if (!profile) return {};
    return {profile->fitted_on.begin(), profile->fitted_on.end()};
  }

  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::set<std::string>> lists_;
};

std::string reason_of(const Errors& errors) {
  std::string out;
  for (Error error : errors) {
    error.file.clear();
    if (!out.empty()) out += "; ";
    out += to_string(error);
  }
  return out;
}

void fail(CaseResult& result, const Errors& errors) {
  result.failed = reason_of(errors);
  const bool illegal = std::any_of(errors.begin(), errors.end(), [](const Error& error) {
    return error.code == ErrorCode::kIllegal;
  });
  if (illegal) result.contradiction = Contradiction::kIllegal;
  result.not_supported = std::all_of(errors.begin(), errors.end(), [](const Error& error) {
    return error.code == ErrorCode::kNotSupported;
  });
}

void predict_case(const Suite& suite, const SuiteCase& test_case, const DataFolders& folders,
                  const CheckOptions& options, FittedOn& fitted_on, CaseResult& result) {
  result = describe(suite, test_case);
  const auto document = JsonDocument::parse(test_case.scenario, suite.file);
  if (!document) return fail(result, document.error());
  const auto scenario = read_scenario(**document, folders);
  if (!scenario) return fail(result, scenario.error());
  result.fitted = fitted_on.contains(*scenario, result);
  PredictOptions predict_options;
  predict_options.fold = options.fold;
  const auto prediction = predict(*scenario, folders, predict_options);
  if (!prediction) return fail(result, prediction.error());
  align(result, *scenario, *prediction, test_case.convention);
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
  FittedOn fitted_on(folders.profiles);
  std::atomic<std::size_t> done = 0;
  run_in_parallel(options.threads, jobs.size(), [&](std::size_t, std::size_t i) {
    CaseResult& result = report.cases[i];
    try {
      predict_case(*jobs[i].suite, *jobs[i].test_case, folders, options, fitted_on, result);
    } catch (const std::exception& error) {
      // An exception in one case must not end the others.
      result.failed = std::string("internal error: ") + error.what();
    }
    if (options.progress) options.progress(++done, jobs.size());
  });
  report.summary = summarise(report.cases);
  return report;
}

}  // namespace stepcast
