// SPDX-License-Identifier: Apache-2.0
#include "predict/measured_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cluster/data_folder.h"
#include "core/json_fields.h"
#include "core/remembered_files.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr const char* kName = "measured_errors";
constexpr double kLow = 0.05, kHigh = 0.95;  // so that nine in ten lie between
// The power of the common share that a run counts by. With it intervals cover nine in ten of the
// runs of sources that were left out (scripts/leave-one-source-out.py).
constexpr double kSharpness = 8;
// A mechanism of a run that the scenario does not have counts twice as much as one that the run
// lacks: the run's error may be that mechanism's.
constexpr double kForeign = 2;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::vector<std::string> in_order(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::lower_bound(names, name) - names.begin());
}

// Runs of one source with equal mechanisms, as a line of the file has them.
struct ErrorRow {
  std::string source;
  std::vector<std::string> run;
  std::vector<double> time, memory;  // logarithms
  std::vector<std::string> mechanisms;

  static auto fields() {
    using F = ErrorRow;
    constexpr double kAny = std::numeric_limits<double>::max();
    return std::tuple{json_field("source", &F::source).required(), json_field("run", &F::run),
                      json_field("time", &F::time).within(-kAny, kAny),
                      json_field("memory", &F::memory).within(-kAny, kAny).unless_usual(),
                      json_field("mechanisms", &F::mechanisms)};
  }
};

struct Weighted {
  double value, weight;
};

// A part `q` of the weight lies below this value; between two values it grows in proportion.
double quantile_of(std::span<const Weighted> sorted, double all, double q) {
  double below = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double middle = below + sorted[i].weight / 2;
    if (middle >= q * all) {
      if (i == 0) return sorted[i].value;
      const double before = below - sorted[i - 1].weight / 2;
      const double share = (q * all - before) / (middle - before);
      return sorted[i - 1].value + share * (sorted[i].value - sorted[i - 1].value);
    }
    below += sorted[i].weight;
  }
  return sorted.back().value;
}

std::optional<ErrorBand> band_of(std::vector<Weighted> errors) {
  std::erase_if(errors, [](const Weighted& one) { return one.weight <= 0; });
  if (errors.empty()) return std::nullopt;
  std::ranges::sort(errors, {}, &Weighted::value);
  double all = 0;
  for (const Weighted& one : errors) all += one.weight;
  return ErrorBand{quantile_of(errors, all, kLow), quantile_of(errors, all, kHigh)};
}

}  // namespace

MeasuredErrors::MeasuredErrors(std::span<const MeasuredError> errors)
    : cases_(errors.begin(), errors.end()) {
  std::set<std::string> mechanisms, sources;
  for (const MeasuredError& error : errors) {
    mechanisms.insert(error.mechanisms.begin(), error.mechanisms.end());
    sources.insert(error.source);
  }
  mechanisms_ = in_order(mechanisms);
  sources_ = in_order(sources);
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t> known;
  for (const MeasuredError& error : errors) {
    std::vector<std::size_t> own;
    for (const std::string& name : error.mechanisms) own.push_back(place_of(mechanisms_, name));
    std::ranges::sort(own);
    const std::size_t source = place_of(sources_, error.source);
    const auto [found, fresh] = known.try_emplace({source, own}, groups_.size());
    if (fresh) groups_.push_back({source, std::move(own)});
    Group& group = groups_[found->second];
    group.times.push_back(rounded(error.log_error));
    group.names.push_back(error.run);
    if (error.memory_log_error) group.memory.push_back(rounded(*error.memory_log_error));
    ++runs_;
  }
  count();
}

int MeasuredErrors::Seen::count_sources() const {
  return static_cast<int>(std::ranges::count(sources, true));
}

void MeasuredErrors::count() {
  seen_.assign(mechanisms_.size(), {0, std::vector<bool>(sources_.size(), false), 0});
  for (const Group& group : groups_) {
    for (const std::size_t at : group.mechanisms) {
      seen_[at].runs += static_cast<int>(group.times.size());
      seen_[at].sources[group.source] = true;
      seen_[at].sum += std::accumulate(group.times.begin(), group.times.end(), 0.0);
    }
  }
  double squares = 0;
  int proven = 0;
  for (const Seen& seen : seen_) {
    if (seen.runs < kEnough) continue;
    squares += std::pow(seen.sum / seen.runs, 2);
    ++proven;
  }
  of_unknown_ = proven > 0 ? std::sqrt(squares / proven) : 0;
}

const MeasuredErrors::Seen* MeasuredErrors::find(const std::string& mechanism) const {
  const std::size_t at = place_of(mechanisms_, mechanism);
  return at < mechanisms_.size() && mechanisms_[at] == mechanism ? &seen_[at] : nullptr;
}

std::optional<MechanismError> MeasuredErrors::of(const std::string& mechanism) const {
  const Seen* seen = find(mechanism);
  if (seen == nullptr || seen->runs == 0) return std::nullopt;
  return MechanismError{seen->runs, seen->sum / seen->runs};
}

double MeasuredErrors::doubt(const std::string& mechanism) const {
  constexpr double kOfOneSource = 0.1;
  const Seen* seen = find(mechanism);
  if (seen == nullptr || seen->runs < kEnough) return 1;
  return seen->count_sources() < kSources ? kOfOneSource : 0;
}

double MeasuredErrors::weight_of(const std::string& mechanism) const {
  const Seen* seen = find(mechanism);
  const double of = seen == nullptr ? 1 : std::max(1, seen->runs);
  return std::log1p(static_cast<double>(runs_) / of);
}

std::vector<NearRun> MeasuredErrors::nearest(const std::vector<std::string>& mechanisms,
                                             std::size_t most) const {
  std::vector<NearRun> out;
  for (const MeasuredError& one : cases_) {
    double shared = 0, all = 0;
    const auto has = [](const std::vector<std::string>& list, const std::string& name) {
      return std::ranges::find(list, name) != list.end();
    };
    for (const std::string& name : mechanisms) {
      const double weight = weight_of(name);
      all += weight;
      if (has(one.mechanisms, name)) shared += weight;
    }
    for (const std::string& name : one.mechanisms) {
      if (!has(mechanisms, name)) all += weight_of(name);
    }
    out.push_back({&one, all > 0 ? shared / all : 0});
  }
  std::ranges::stable_sort(out, std::greater(), &NearRun::likeness);
  if (out.size() > most) out.resize(most);
  return out;
}

std::optional<ErrorBand> MeasuredErrors::near(std::span<const std::string> mechanisms,
                                              std::vector<double> Group::*errors) const {
  std::vector<double> telling;  // by mechanism
  for (const Seen& seen : seen_) {
    telling.push_back(std::log1p(static_cast<double>(runs_) / std::max(seen.runs, 1)));
  }
  std::vector<bool> wanted(mechanisms_.size(), false);
  double own = 0;
  for (const std::string& name : mechanisms) {
    if (const Seen* seen = find(name)) {
      const auto at = static_cast<std::size_t>(seen - seen_.data());
      wanted[at] = true;
      own += telling[at];
    }
  }
  std::vector<Weighted> out;
  for (const Group& group : groups_) {
    double common = 0, all = own;
    for (const std::size_t at : group.mechanisms) {
      (wanted[at] ? common : all) += telling[at] * (wanted[at] ? 1 : kForeign);
    }
    const double weight = all > 0 ? std::pow(common / all, kSharpness) : 0;
    for (const double error : group.*errors) out.push_back({error, weight});
  }
  return band_of(std::move(out));
}

std::optional<ErrorBand> MeasuredErrors::times_near(std::span<const std::string> mechanisms) const {
  return near(mechanisms, &Group::times);
}

std::optional<ErrorBand> MeasuredErrors::memory_near(
    std::span<const std::string> mechanisms) const {
  return near(mechanisms, &Group::memory);
}

Result<MeasuredErrors> MeasuredErrors::read(const std::string& profiles_folder) {
  static RememberedFiles<MeasuredErrors> remembered;
  const DataFolder folder(profiles_folder, kName);
  if (!folder.has(kName)) return MeasuredErrors();
  return remembered.get({profiles_folder + "/" + kName + ".json"},
                        [&] { return read_from(folder); });
}

Result<MeasuredErrors> MeasuredErrors::read_from(const DataFolder& folder) {
  const auto document = folder.open(kName);
  if (!document) return failure(document.error());
  ObjectReader object((*document)->root());
  object.ignore("stepcast_measured_errors");  // checked when it was opened
  object.required_text("made_by");
  std::vector<MeasuredError> errors;
  if (const auto groups = object.required("runs")) {
    for (const JsonValue& item : groups->items()) {
      const auto row = read_object<ErrorRow>(item);
      for (std::size_t i = 0; i < row.time.size(); ++i) {
        MeasuredError& error =
            errors.emplace_back(MeasuredError{row.mechanisms, row.time[i], {}, row.source});
        if (i < row.run.size()) error.run = row.run[i];
        if (i < row.memory.size()) error.memory_log_error = row.memory[i];
      }
    }
  }
  object.finish();
  if (!(*document)->errors().empty()) return failure((*document)->errors());
  return MeasuredErrors(errors);
}

std::string MeasuredErrors::text() const {
  std::string out =
      "{\n \"stepcast_measured_errors\": 1,\n \"made_by\": \"stepcast check all "
      "--errors FILE: of ln(measured / predicted)\",\n \"runs\": [";
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    ErrorRow row{sources_[group.source], group.names, group.times, group.memory, {}};
    for (const std::size_t at : group.mechanisms) row.mechanisms.push_back(mechanisms_[at]);
    out += (i == 0 ? "\n  " : ",\n  ") + json_text(json_of(row));
  }
  return out + "\n ]\n}\n";
}

}  // namespace stepcast
