// SPDX-License-Identifier: Apache-2.0
#include "predict/measured_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/carried_files.h"
#include "core/read_rows.h"
#include "core/remembered_files.h"
#include "core/row_types.h"
#include "core/text/escape.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

constexpr const char* kName = "measured_errors";
constexpr const char* kFormatKey = "stepcast_measured_errors";
constexpr std::int64_t kFormat = 2;  // 1 had every row with the names of its mechanisms
constexpr const char* kHint = "make the file anew: stepcast check all --errors FILE";
constexpr double kLow = 0.05, kHigh = 0.95;  // so that nine in ten lie between
// The power of the common share that a run counts by, and that of all its runs which a publisher
// counts by: a thousand runs of one cluster and one program have their errors in common. With both
// intervals cover nine in ten of the runs of each publisher that was left out
// (scripts/leave-one-publisher-out.py).
constexpr double kSharpness = 4;
constexpr double kOfCrowd = 0.5;
// A mechanism of a run that the scenario does not have counts twice as much as one that the run
// lacks: the run's error may be that mechanism's.
constexpr double kForeign = 2;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::lower_bound(names, name) - names.begin());
}

// Runs of one source with equal mechanisms, as a line of the file has them. Sources and mechanisms
// are places in the file's lists: by name they would be most of the file, and of the time to read
// it.
struct ErrorRow {
  std::int64_t source = 0;
  std::vector<std::string> run;
  std::vector<double> time, memory;  // logarithms
  std::vector<std::int64_t> mechanisms;

  static Rows fields() {
    using F = ErrorRow;
    constexpr double kAny = std::numeric_limits<double>::max();
    static constexpr Row all[] = {row<&F::source>("source").required(), row<&F::run>("run"),
                                  row<&F::time>("time").within(-kAny, kAny),
                                  row<&F::memory>("memory").within(-kAny, kAny).unless_usual(),
                                  row<&F::mechanisms>("mechanisms")};
    return rows_of<F>(all);
  }
};

struct ErrorFile {
  std::vector<std::string> sources, mechanisms;  // in order
  std::vector<ErrorRow> runs;

  static Rows fields() {
    using F = ErrorFile;
    static constexpr Row all[] = {
        remark(kFormatKey), remark("made_by"), row<&F::sources>("sources").required(),
        row<&F::mechanisms>("mechanisms").required(), row<&F::runs>("runs").required()};
    return rows_of<F>(all);
  }
  void check(const JsonValue& value) const {
    const auto in_order = [](const std::vector<std::string>& names) {
      return std::ranges::adjacent_find(names, std::greater_equal()) == names.end();
    };
    if (!in_order(sources) || !in_order(mechanisms)) {
      value.fail(ErrorCode::kBadValue, "sources and mechanisms must be in order, each once", kHint);
    }
    const auto is_place = [](std::int64_t place, const std::vector<std::string>& names) {
      return place >= 0 && place < static_cast<std::int64_t>(names.size());
    };
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const ErrorRow& row = runs[i];
      const bool known =
          is_place(row.source, sources) &&
          std::ranges::all_of(row.mechanisms, [&](auto at) { return is_place(at, mechanisms); }) &&
          std::ranges::adjacent_find(row.mechanisms, std::greater_equal()) == row.mechanisms.end();
      if (!known) {
        value.fail(ErrorCode::kBadValue,
                   fmt::format("runs[{}] must name its source and mechanisms by places in the "
                               "lists, in order",
                               i),
                   kHint);
      }
      if (row.run.size() != row.time.size()) {
        value.fail(
            ErrorCode::kBadValue,
            fmt::format("runs[{}] has {} names and {} times", i, row.run.size(), row.time.size()),
            kHint);
      }
    }
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

// Makes a book of runs that name what they exercised.
MeasuredErrors::MeasuredErrors(std::span<const MeasuredError> errors) {
  std::set<std::string> sources, mechanisms;
  for (const MeasuredError& error : errors) {
    sources.insert(error.source);
    mechanisms.insert(error.mechanisms.begin(), error.mechanisms.end());
  }
  Book book;
  book.sources.assign(sources.begin(), sources.end());
  book.mechanisms.assign(mechanisms.begin(), mechanisms.end());
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t> known;
  for (const MeasuredError& error : errors) {
    std::vector<std::size_t> own;
    for (const std::string& name : error.mechanisms) {
      own.push_back(place_of(book.mechanisms, name));
    }
    std::ranges::sort(own);
    const std::size_t source = place_of(book.sources, error.source);
    const auto [found, fresh] = known.try_emplace({source, own}, book.groups.size());
    if (fresh) book.groups.push_back({source, std::move(own)});
    Group& group = book.groups[found->second];
    group.times.push_back(rounded(error.log_error));
    group.names.push_back(error.run);
    if (error.memory_log_error) group.memory.push_back(rounded(*error.memory_log_error));
  }
  book.count();
  book_ = std::make_shared<const Book>(std::move(book));
}

int MeasuredErrors::Seen::count_sources() const {
  return static_cast<int>(std::ranges::count(sources, true));
}

void MeasuredErrors::Book::count() {
  runs.clear();
  for (std::size_t at = 0; at < groups.size(); ++at) {
    for (std::size_t i = 0; i < groups[at].times.size(); ++i) runs.emplace_back(at, i);
  }
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

bool MeasuredErrors::proves(const std::string& mechanism) const {
  return doubt(mechanism) <= 0 && book_->seen[find(mechanism)].count_sources() >= kSources;
}

double MeasuredErrors::doubt(const std::string& mechanism) const {
  const std::size_t at = find(mechanism);
  return at == book_->seen.size() || book_->seen[at].runs < kEnough ? 1 : 0;
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
  std::vector<double> weights;                          // by group
  std::vector<double> crowd(book_->sources.size(), 0);  // by publisher
  for (const Group& group : book_->groups) {
    double common = 0, all = own;
    for (const std::size_t at : group.mechanisms) {
      (wanted[at] ? common : all) += book_->telling(at) * (wanted[at] ? 1 : kForeign);
    }
    weights.push_back(all > 0 ? std::pow(common / all, kSharpness) : 0);
    crowd[group.source] += weights.back() * static_cast<double>((group.*errors).size());
  }
  std::vector<Weighted> out;
  for (std::size_t at = 0; at < book_->groups.size(); ++at) {
    const Group& group = book_->groups[at];
    const double all = crowd[group.source];
    const double weight = all > 0 ? weights[at] * std::pow(all, kOfCrowd - 1) : 0;
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

MeasuredErrors MeasuredErrors::without(const std::string& publisher) const {
  Book book;
  book.mechanisms = book_->mechanisms;
  book.sources = book_->sources;
  for (const Group& group : book_->groups) {
    if (book.sources[group.source] != publisher) book.groups.push_back(group);
  }
  book.count();
  return MeasuredErrors(std::make_shared<const Book>(std::move(book)));
}

Result<MeasuredErrors> MeasuredErrors::read(const std::string& profiles_folder) {
  static RememberedFiles<MeasuredErrors> remembered;
  const std::string file = fmt::format("{}/{}.json", profiles_folder, kName);
  if (!is_data_file(file)) return MeasuredErrors();
  return remembered.get({file}, [&] { return read_from(file); });
}

Result<MeasuredErrors> MeasuredErrors::read_from(const std::string& file) {
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  if (!ObjectReader((*document)->root()).is_format(kFormatKey, kFormat)) {
    return failure((*document)->errors());
  }
  auto read = read_object<ErrorFile>((*document)->root());
  if (!(*document)->ok()) return failure((*document)->errors());
  Book book;
  book.sources = std::move(read.sources);
  book.mechanisms = std::move(read.mechanisms);
  for (ErrorRow& row : read.runs) {
    book.groups.push_back({static_cast<std::size_t>(row.source),
                           {row.mechanisms.begin(), row.mechanisms.end()},
                           std::move(row.time),
                           std::move(row.memory),
                           std::move(row.run)});
  }
  book.count();
  return MeasuredErrors(std::make_shared<const Book>(std::move(book)));
}

// A row in each line, so that changes of one suite change few lines.
std::string MeasuredErrors::text() const {
  std::string out = fmt::format("{{\n \"{}\": {},\n", kFormatKey, kFormat);
  out += " \"made_by\": \"stepcast check all --errors FILE: of ln(measured / predicted)\"";
  const auto add = [&](const char* key, const auto& list, const auto& json) {
    out += fmt::format(",\n \"{}\": [", key);
    const char* before = "\n  ";
    for (const auto& one : list) {
      out += std::exchange(before, ",\n  ");
      out += json_text(json(one));
    }
    out += "\n ]";
  };
  const auto name = [](const std::string& text) { return Json(text); };
  add("sources", book_->sources, name);
  add("mechanisms", book_->mechanisms, name);
  add("runs", book_->groups, [](const Group& group) {
    ErrorRow row{
        static_cast<std::int64_t>(group.source), group.names, group.times, group.memory, {}};
    row.mechanisms.assign(group.mechanisms.begin(), group.mechanisms.end());
    return json_of(row);
  });
  return out + "\n}\n";
}

}  // namespace stepcast
