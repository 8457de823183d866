// SPDX-License-Identifier: Apache-2.0
#include "predict/measured_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
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
  // Runs of equal errors keep their order, whichever library sorts.
  std::ranges::stable_sort(errors, {}, &Weighted::value);
  double all = 0;
  for (const Weighted& one : errors) all += one.weight;
  return ErrorBand{quantile_of(errors, all, kLow), quantile_of(errors, all, kHigh)};
}

}  // namespace

// Makes a book of rows.
class MeasuredErrors::Binder {
 public:
  explicit Binder(std::span<const ErrorRow> rows) {
    for (const ErrorRow& row : rows) {
      sources_.add(row.source);
      for (const std::string& mechanism : row.mechanisms) mechanisms_.add(mechanism);
    }
    book_.sources = sources_.take();
    book_.mechanisms = mechanisms_.take();
    for (const ErrorRow& row : rows) add(row);
    book_.count();
  }
  std::shared_ptr<const Book> bound() { return std::make_shared<const Book>(std::move(book_)); }

 private:
  // Names that many rows repeat, in order, each once. They must outlive this.
  class NamesInOrder {
   public:
    void add(const std::string& name) { places_.try_emplace(name, 0); }
    std::vector<std::string> take() {
      std::vector<std::string> out(places_.size());
      std::size_t place = 0;
      for (const auto& [name, unused] : places_) out[place++] = name;
      std::ranges::sort(out);
      for (std::size_t i = 0; i < out.size(); ++i) places_.at(out[i]) = i;
      return out;
    }
    std::size_t place_of(const std::string& name) const { return places_.at(name); }

   private:
    std::unordered_map<std::string_view, std::size_t> places_;
  };

  void add(const ErrorRow& row) {
    std::vector<std::size_t> own;
    own.reserve(row.mechanisms.size());
    for (const std::string& name : row.mechanisms) own.push_back(mechanisms_.place_of(name));
    if (!std::ranges::is_sorted(own)) std::ranges::sort(own);
    const std::size_t source = sources_.place_of(row.source);
    const auto [found, fresh] = known_.try_emplace({source, own}, book_.groups.size());
    if (fresh) book_.groups.push_back({source, std::move(own)});
    Group& group = book_.groups[found->second];
    for (std::size_t i = 0; i < row.time.size(); ++i) {
      book_.runs.emplace_back(found->second, group.times.size());
      group.times.push_back(rounded(row.time[i]));
      group.names.push_back(i < row.run.size() ? row.run[i] : "");
    }
    for (const double error : row.memory) group.memory.push_back(rounded(error));
  }

  Book book_;
  NamesInOrder sources_, mechanisms_;
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t> known_;
};

MeasuredErrors::MeasuredErrors(std::span<const MeasuredError> errors) {
  std::vector<ErrorRow> rows;
  for (const MeasuredError& error : errors) {
    ErrorRow& row = rows.emplace_back(
        ErrorRow{error.source, {error.run}, {error.log_error}, {}, error.mechanisms});
    if (error.memory_log_error) row.memory.push_back(*error.memory_log_error);
  }
  book_ = Binder(rows).bound();
}

int MeasuredErrors::Seen::count_sources() const {
  return static_cast<int>(std::ranges::count(sources, true));
}

void MeasuredErrors::Book::count() {
  seen.assign(mechanisms.size(), {0, std::vector<bool>(sources.size(), false), 0});
  for (const Group& group : groups) {
    for (const std::size_t at : group.mechanisms) {
      seen[at].runs += static_cast<int>(group.times.size());
      seen[at].sources[group.source] = true;
      seen[at].sum += std::accumulate(group.times.begin(), group.times.end(), 0.0);
    }
  }
  double squares = 0;
  int proven = 0;
  for (const Seen& one : seen) {
    if (one.runs < kEnough) continue;
    squares += std::pow(one.sum / one.runs, 2);
    ++proven;
  }
  of_unknown = proven > 0 ? std::sqrt(squares / proven) : 0;
}

double MeasuredErrors::Book::telling(std::size_t mechanism) const {
  const int of = mechanism < seen.size() ? std::max(1, seen[mechanism].runs) : 1;
  return std::log1p(static_cast<double>(runs.size()) / of);
}

std::size_t MeasuredErrors::find(const std::string& mechanism) const {
  const std::vector<std::string>& all = book_->mechanisms;
  const std::size_t at = place_of(all, mechanism);
  return at < all.size() && all[at] == mechanism ? at : all.size();
}

std::optional<MechanismError> MeasuredErrors::of(const std::string& mechanism) const {
  const std::size_t at = find(mechanism);
  if (at == book_->seen.size() || book_->seen[at].runs == 0) return std::nullopt;
  const Seen& seen = book_->seen[at];
  return MechanismError{seen.runs, seen.sum / seen.runs};
}

double MeasuredErrors::doubt(const std::string& mechanism) const {
  constexpr double kOfOneSource = 0.1;
  const std::size_t at = find(mechanism);
  if (at == book_->seen.size() || book_->seen[at].runs < kEnough) return 1;
  return book_->seen[at].count_sources() < kSources ? kOfOneSource : 0;
}

std::vector<NearRun> MeasuredErrors::nearest(const std::vector<std::string>& mechanisms,
                                             std::size_t most) const {
  std::vector<bool> wanted(book_->mechanisms.size(), false);
  double own = 0;
  for (const std::string& name : mechanisms) {
    const std::size_t at = find(name);
    own += book_->telling(at);
    if (at < wanted.size()) wanted[at] = true;
  }
  std::vector<double> likeness;  // by group
  for (const Group& group : book_->groups) {
    double shared = 0, all = own;
    for (const std::size_t at : group.mechanisms) {
      (wanted[at] ? shared : all) += book_->telling(at);
    }
    likeness.push_back(all > 0 ? shared / all : 0);
  }
  std::vector<std::size_t> order(book_->runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t run) { return likeness[book_->runs[run].first]; });
  if (order.size() > most) order.resize(most);
  std::vector<NearRun> out;
  for (const std::size_t run : order) {
    const auto [at, place] = book_->runs[run];
    const Group& group = book_->groups[at];
    NearRun& near = out.emplace_back(NearRun{group.names[place], {}, group.times[place], 0});
    for (const std::size_t mechanism : group.mechanisms) {
      near.mechanisms.push_back(book_->mechanisms[mechanism]);
    }
    near.likeness = likeness[at];
  }
  return out;
}

std::optional<ErrorBand> MeasuredErrors::near(std::span<const std::string> mechanisms,
                                              std::vector<double> Group::*errors) const {
  std::vector<bool> wanted(book_->mechanisms.size(), false);
  double own = 0;
  for (const std::string& name : mechanisms) {
    const std::size_t at = find(name);
    if (at == wanted.size()) continue;
    wanted[at] = true;
    own += book_->telling(at);
  }
  std::vector<Weighted> out;
  for (const Group& group : book_->groups) {
    double common = 0, all = own;
    for (const std::size_t at : group.mechanisms) {
      (wanted[at] ? common : all) += book_->telling(at) * (wanted[at] ? 1 : kForeign);
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
  std::vector<ErrorRow> rows;
  if (const auto groups = object.required("runs")) {
    for (const JsonValue& item : groups->items()) rows.push_back(read_object<ErrorRow>(item));
  }
  object.finish();
  if (!(*document)->errors().empty()) return failure((*document)->errors());
  return MeasuredErrors(Binder(rows).bound());
}

std::string MeasuredErrors::text() const {
  std::string out =
      "{\n \"stepcast_measured_errors\": 1,\n \"made_by\": \"stepcast check all "
      "--errors FILE: of ln(measured / predicted)\",\n \"runs\": [";
  for (std::size_t i = 0; i < book_->groups.size(); ++i) {
    const Group& group = book_->groups[i];
    ErrorRow row{book_->sources[group.source], group.names, group.times, group.memory, {}};
    for (const std::size_t at : group.mechanisms) row.mechanisms.push_back(book_->mechanisms[at]);
    out += (i == 0 ? "\n  " : ",\n  ") + json_text(json_of(row));
  }
  return out + "\n ]\n}\n";
}

}  // namespace stepcast
