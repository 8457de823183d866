// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>

#include "core/parallel.h"
#include "predict/interval.h"

namespace stepcast {
namespace {

constexpr std::size_t kRound = 32;         // replays between two looks at the best
constexpr std::size_t kShownTooLarge = 8;  // of the layouts that do not fit
constexpr double kNearMiss = 1.25;         // of the memory limit

struct Entry {
  double bound_s;
  ByteCount device_bytes;
  LayoutChoice choice;
  bool replayed = false;
  bool operator<(const Entry& other) const {
    return bound_s != other.bound_s ? bound_s < other.bound_s : choice < other.choice;
  }
};

// The state of one thread.
struct Worker {
  Worker(const Space& space, const PricingByFramework& pricing)
      : scenario(space.base()), bounds(scenario, pricing) {}
  Scenario scenario;
  BoundMaker bounds;
};

struct Branch {
  std::vector<Entry> entries;
  std::vector<RejectedLayout> too_large;
  std::optional<RejectedLayout> smallest;  // of those that do not fit
  SpaceCount count;
  std::int64_t cut_by_memory = 0;
  bool cut_short = false;  // the search ended before the walk did
};

void keep_fastest(std::vector<RejectedLayout>& list) {
  const auto faster = [](const RejectedLayout& a, const RejectedLayout& b) {
    return a.bound_s != b.bound_s ? a.bound_s < b.bound_s : a.choice < b.choice;
  };
  std::sort(list.begin(), list.end(), faster);
  if (list.size() > kShownTooLarge) list.resize(kShownTooLarge);
}

void keep_smaller(const std::optional<RejectedLayout>& other,
                  std::optional<RejectedLayout>& smallest) {
  if (other && (!smallest || other->device_bytes < smallest->device_bytes)) smallest = other;
}

class Search {
 public:
  Search(const Space& space, const PricingByFramework& pricing, const SearchOptions& options)
      : space_(space), pricing_(pricing), options_(options) {
    for (int i = 0; i < std::max(1, options.threads); ++i) {
      workers_.push_back(std::make_unique<Worker>(space, pricing));
    }
  }

  Result<SearchResult> run();

 private:
  void bound_all();
  void bound_branch(Worker& worker, const LayoutChoice& prefix, Branch& out) const;
  std::vector<std::size_t> next_round(double below_s, ByteCount below_bytes) const;
  Errors replay(const std::vector<std::size_t>& round);
  Errors find_best();
  Errors find_front();
  double last_place() const;
  // No layout whose bound is above it takes one of the first places.
  double last_bound() const { return last_place() * (1 + kNearTie) / least_rise_; }
  void put_in_places();
  bool late() const;
  bool ends() const { return (options_.stop && options_.stop()) || late(); }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void report(double bound_s);

  const Space& space_;
  const PricingByFramework& pricing_;
  const SearchOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Entry> entries_;  // best first
  std::size_t first_open_ = 0;  // entries before it are replayed
  bool bounded_all_ = false;
  double least_rise_ = 1;  // of the quantile that ranks above the step time
  SearchResult out_;
};

bool Search::late() const {
  if (options_.late && options_.late()) return true;
  return options_.time_limit_s > 0 && elapsed() > options_.time_limit_s;
}

void Search::report(double bound_s) {
  if (!options_.progress) return;
  const double best = out_.found.empty() ? 0 : out_.found.front().prediction.step_time.value();
  const auto behind = std::partition_point(
      entries_.begin(), entries_.end(),
      [last = last_bound()](const Entry& entry) { return entry.bound_s < last; });
  const auto open = behind - entries_.begin() - static_cast<std::ptrdiff_t>(first_open_);
  options_.progress(
      {elapsed(), out_.bounded, out_.replayed, std::max<std::ptrdiff_t>(0, open), best, bound_s});
}

void Search::bound_branch(Worker& worker, const LayoutChoice& prefix, Branch& out) const {
  const auto visit = [&](const LayoutChoice& choice) {
    const Bound bound = worker.bounds.bound();
    if (bound.device_bytes <= out_.memory_limit) {
      out.entries.push_back({bound.time_s, bound.device_bytes, choice});
      return;
    }
    ++out.cut_by_memory;
    const RejectedLayout rejected{choice, bound.time_s, bound.device_bytes};
    keep_smaller(rejected, out.smallest);
    const auto limit = static_cast<double>(out_.memory_limit);
    if (static_cast<double>(bound.device_bytes) > kNearMiss * limit) return;
    out.too_large.push_back(rejected);
    if (out.too_large.size() > 64 * kShownTooLarge) keep_fastest(out.too_large);
  };
  out.count = space_.walk(prefix, worker.scenario, visit, [&] {
    out.cut_short = out.cut_short || ends();
    return out.cut_short;
  });
  keep_fastest(out.too_large);
}

void Search::bound_all() {
  const std::vector<LayoutChoice> prefixes = space_.branches(out_.space);
  std::vector<Branch> branches(prefixes.size());
  std::size_t done = 0;
  std::mutex mutex;
  run_in_parallel(
      options_.threads, prefixes.size(),
      [&](std::size_t worker, std::size_t i) {
        bound_branch(*workers_[worker], prefixes[i], branches[i]);
        const std::lock_guard lock(mutex);
        ++done;
        out_.bounded += branches[i].count.legal;
        report(0);
      },
      [this] { return ends(); });
  bounded_all_ = done == prefixes.size();
  for (Branch& branch : branches) {
    bounded_all_ = bounded_all_ && !branch.cut_short;
    out_.space.add(branch.count);
    out_.cut_by_memory += branch.cut_by_memory;
    keep_smaller(branch.smallest, out_.smallest);
    out_.too_large.insert(out_.too_large.end(), branch.too_large.begin(), branch.too_large.end());
    entries_.insert(entries_.end(), branch.entries.begin(), branch.entries.end());
    branch.entries = {};
  }
  keep_fastest(out_.too_large);
  std::sort(entries_.begin(), entries_.end());
}

// Places are filled by layouts that a forecast tells apart.
double Search::last_place() const {
  std::int64_t places = 0;
  for (std::size_t i = 0; i < out_.found.size(); ++i) {
    const Prediction& prediction = out_.found[i].prediction;
    if (i > 0 && share_place(out_.found[i - 1].prediction, prediction)) continue;
    if (++places == options_.top) return out_.found[i].ranked_s;
  }
  return std::numeric_limits<double>::infinity();
}

// The least bounds that are not replayed yet, below both limits.
std::vector<std::size_t> Search::next_round(double below_s, ByteCount below_bytes) const {
  std::vector<std::size_t> out;
  for (std::size_t i = first_open_; i < entries_.size() && out.size() < kRound; ++i) {
    if (entries_[i].bound_s >= below_s) break;
    if (!entries_[i].replayed && entries_[i].device_bytes <= below_bytes) out.push_back(i);
  }
  return out;
}

Errors Search::replay(const std::vector<std::size_t>& round) {
  std::vector<Result<Prediction>> predictions(round.size(), Result<Prediction>(Prediction{}));
  std::vector<char> done(round.size(), 0);
  PredictOptions options;
  options.stop = [this] { return late(); };
  run_in_parallel(
      options_.threads, round.size(),
      [&](std::size_t worker, std::size_t i) {
        Scenario& scenario = workers_[worker]->scenario;
        space_.put(entries_[round[i]].choice, scenario);
        predictions[i] = predict(scenario, *pricing_[scenario.training.framework], options);
        done[i] = predictions[i] || !predictions[i].error().empty() ? 1 : 0;
      },
      options.stop);
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (done[i] == 0) continue;
    Entry& entry = entries_[round[i]];
    entry.replayed = true;
    ++out_.replayed;
    if (!predictions[i]) return predictions[i].error();
    Prediction& prediction = *predictions[i];
    if (prediction.peak_device > out_.memory_limit) {
      ++out_.replayed_too_large;
      out_.too_large.push_back({entry.choice, entry.bound_s, prediction.peak_device});
      keep_smaller(out_.too_large.back(), out_.smallest);
    } else {
      const double ranked = quantile(prediction, options_.risk).value();
      out_.found.push_back({entry.choice, entry.bound_s, ranked, {}, std::move(prediction)});
    }
  }
  while (first_open_ < entries_.size() && entries_[first_open_].replayed) ++first_open_;
  std::sort(out_.found.begin(), out_.found.end(), [](const FoundLayout& a, const FoundLayout& b) {
    return a.ranked_s != b.ranked_s ? a.ranked_s < b.ranked_s : a.choice < b.choice;
  });
  return {};
}

Errors Search::find_best() {
  // That none of the first replays fits does not say that none of the others does.
  while (options_.prove || out_.replayed < options_.replays || out_.found.empty()) {
    const auto round = next_round(last_bound(), out_.memory_limit);
    if (round.empty()) {
      out_.proven = bounded_all_;
      const auto behind = std::partition_point(
          entries_.begin(), entries_.end(),
          [last = last_bound()](const Entry& entry) { return entry.bound_s < last; });
      out_.cut_by_time = out_.proven ? entries_.end() - behind : 0;
      return {};
    }
    if (ends() && (out_.replayed > 0 || late())) break;
    if (Errors errors = replay(round); !errors.empty()) return errors;
    report(first_open_ < entries_.size() ? entries_[first_open_].bound_s : 0);
  }
  const auto round = next_round(last_bound(), out_.memory_limit);
  out_.proven = bounded_all_ && round.empty();
  if (bounded_all_ && !round.empty()) out_.bound_s = entries_[round.front()].bound_s;
  return {};
}

// Point by point, each by a search of its own below a tenth less memory than the one before.
Errors Search::find_front() {
  std::vector<LayoutChoice> points;
  ByteCount limit = out_.memory_limit;
  const auto fastest = [&]() -> const FoundLayout* {
    for (const FoundLayout& found : out_.found) {
      if (found.prediction.peak_device <= limit) return &found;
    }
    return nullptr;
  };
  while (static_cast<int>(points.size()) < options_.front && !ends()) {
    const std::int64_t enough = out_.replayed + options_.replays;
    while (options_.prove || out_.replayed < enough) {
      const FoundLayout* best = fastest();
      const auto round = next_round(best != nullptr ? best->prediction.step_time.value()
                                                    : std::numeric_limits<double>::infinity(),
                                    limit);
      if (round.empty() || ends()) break;
      if (Errors errors = replay(round); !errors.empty()) return errors;
      report(0);
    }
    const FoundLayout* best = fastest();
    if (best == nullptr) break;
    points.push_back(best->choice);
    limit = best->prediction.peak_device / 10 * 9;
  }
  for (std::size_t i = 0; i < out_.found.size(); ++i) {
    if (std::find(points.begin(), points.end(), out_.found[i].choice) != points.end()) {
      out_.front.push_back(i);
    }
  }
  return {};
}

void Search::put_in_places() {
  std::vector<double> values;
  Scenario scratch = space_.base();
  for (FoundLayout& found : out_.found) {
    found.simplicity = simplicity(space_, found.choice, found.prediction.peak_device, scratch);
    values.push_back(found.ranked_s);
  }
  put_in_order(values, out_);
}

Result<SearchResult> Search::run() {
  const double memory = static_cast<double>(space_.base().cluster.spec.accelerator.memory);
  out_.memory_limit = static_cast<ByteCount>(memory * (1 - options_.memory_margin));
  least_rise_ = least_rise(options_.risk);
  out_.combinations = space_.combinations();
  bound_all();
  if (Errors errors = find_best(); !errors.empty()) return failure(std::move(errors));
  if (Errors errors = find_front(); !errors.empty()) return failure(std::move(errors));
  put_in_places();
  keep_fastest(out_.too_large);
  out_.interrupted = !out_.proven && ends();
  out_.elapsed_s = elapsed();
  return std::move(out_);
}

}  // namespace

bool share_place(const Prediction& one, const Prediction& other) {
  return one.step_time.value() == other.step_time.value() && one.peak_device == other.peak_device;
}

std::vector<std::size_t> put_in_order(std::span<const double> values, SearchResult& result) {
  std::vector<Simplicity> simplicities;
  for (const FoundLayout& one : result.found) simplicities.push_back(one.simplicity);
  const std::vector<std::size_t> order = order_of_places(values, simplicities);
  std::vector<FoundLayout> found;
  std::vector<std::size_t> place(order.size());
  for (const std::size_t at : order) {
    place[at] = found.size();
    found.push_back(std::move(result.found[at]));
  }
  result.found = std::move(found);
  for (std::size_t& index : result.front) index = place[index];
  return order;
}

bool is_over(const SearchOptions& options) {
  return (options.stop && options.stop()) || (options.late && options.late());
}

void share_time_limit(SearchOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (options.time_limit_s <= 0) return;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(options.time_limit_s));
  options.time_limit_s = 0;
  options.late = [end] { return Clock::now() > end; };
}

Result<SearchResult> search(const Space& space, const PricingByFramework& pricing,
                            const SearchOptions& options) {
  return Search(space, pricing, options).run();
}

}  // namespace stepcast
