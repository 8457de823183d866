// SPDX-License-Identifier: Apache-2.0
// How far forecasts were from recorded runs, run by run, with the mechanisms that each exercised
// (predict/mechanisms.h): the file measured_errors.json beside the profiles, which
// `stepcast check all --errors FILE` writes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace stepcast {

// One run: who ran it, what it exercised, and its ln(measured / predicted).
struct MeasuredError {
  std::vector<std::string> mechanisms;
  double log_error = 0;                    // of the step time
  std::optional<double> memory_log_error;  // of peak memory, where it was measured
  std::string source;
  std::string run = {};  // "suite/id"
};

// A recorded run that resembles a scenario.
struct NearRun {
  std::string run;  // "suite/id"
  std::vector<std::string> mechanisms;
  double log_error = 0;  // of the step time
  double likeness = 0;   // 1: it exercised the same mechanisms
};

// The runs that exercised a mechanism, and their mean ln(measured / predicted).
struct MechanismError {
  int runs = 0;
  double log_error = 0;
};

// Nine in ten of the errors of runs like a scenario lie between.
struct ErrorBand {
  double low = 0, high = 0;
};

class MeasuredErrors {
 public:
  static constexpr int kEnough = 5;   // runs that exercised a mechanism, before they prove it
  static constexpr int kSources = 2;  // and who published them

  MeasuredErrors() = default;
  explicit MeasuredErrors(std::span<const MeasuredError> errors);

  // The file in this folder. Without one no mechanism was ever exercised.
  static Result<MeasuredErrors> read(const std::string& profiles_folder);
  std::string text() const;

  // The errors of all other publishers: an interval of this one's runs may be made of them.
  MeasuredErrors without(const std::string& publisher) const;

  int runs() const { return static_cast<int>(book_->runs.size()); }
  // Enough runs of enough sources exercised it.
  bool proves(const std::string& mechanism) const;
  // A mechanism adds this to the square of an interval, in units of of_unknown() squared: 1 without
  // enough runs. How far publishers differ is in the errors themselves.
  double doubt(const std::string& mechanism) const;
  // Errors of the runs that are like one that relies on these mechanisms: a run counts by what both
  // rely on, and what few runs have in common tells more than what nearly all have. A publisher
  // counts as the root of what its runs do, because the next runs are somebody else's. Nothing
  // where no run has anything in common with it.
  std::optional<ErrorBand> times_near(std::span<const std::string> mechanisms) const;
  std::optional<ErrorBand> memory_near(std::span<const std::string> mechanisms) const;
  // How far the mean error of a mechanism typically is from zero: what to expect of one that no run
  // exercised. The root of the mean square over those that runs prove; 0 without any.
  double of_unknown() const { return book_->of_unknown; }
  // Gives nothing where no run exercised it.
  std::optional<MechanismError> of(const std::string& mechanism) const;
  // Lists at most `most` runs that have most in common with these mechanisms: shared mechanisms
  // over all of both (Jaccard), a mechanism that few runs exercised weighing more.
  std::vector<NearRun> nearest(const std::vector<std::string>& mechanisms, std::size_t most) const;

 private:
  // Runs of one source that exercised the same.
  struct Group {
    std::size_t source = 0;
    std::vector<std::size_t> mechanisms;          // in order
    std::vector<double> times = {}, memory = {};  // log errors
    std::vector<std::string> names = {};          // of the runs, as `times` has them
  };
  struct Seen {  // of a mechanism
    int runs = 0;
    std::vector<bool> sources;
    double sum = 0;
    int count_sources() const;
  };
  // Everything that was read. Copies of the errors share it.
  struct Book {
    std::vector<std::string> mechanisms, sources;  // in order
    std::vector<Group> groups;
    std::vector<std::pair<std::size_t, std::size_t>> runs;  // a group and a place in it
    std::vector<Seen> seen;                                 // by mechanism
    double of_unknown = 0;

    void count();
    double telling(std::size_t mechanism) const;  // what few runs have in common tells more
  };

  explicit MeasuredErrors(std::shared_ptr<const Book> book) : book_(std::move(book)) {}
  static Result<MeasuredErrors> read_from(const std::string& file);
  std::optional<ErrorBand> near(std::span<const std::string> mechanisms,
                                std::vector<double> Group::*errors) const;
  // Its place among the mechanisms; how many there are where no run exercised it.
  std::size_t find(const std::string& mechanism) const;

  std::shared_ptr<const Book> book_ = std::make_shared<const Book>();
};

}  // namespace stepcast
