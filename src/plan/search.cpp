// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>

#include "core/parallel.h"
#include "plan/branch_descent.h"
#include "plan/branch_order.h"
#include "predict/interval.h"

namespace stepcast {
namespace {

constexpr std::size_t kRound = 32;         // replays between two looks at the best
constexpr std::size_t kShownTooLarge = 8;  // of the layouts that do not fit
constexpr double kNearMiss = 1.25;         // of the memory limit

// Parts of the time that is left, for the search for some layout and for bounds.
constexpr double kOpeningShare = 0.1;
constexpr double kBoundsShare = 0.5;

struct Entry : BoundedLayout {
  bool replayed = false;
  bool operator<(const Entry& other) const {
    return choice == other.choice && bound_s == other.bound_s ? replayed > other.replayed
                                                              : BoundedLayout::operator<(other);
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
  explicit Branch(const LayoutChoice& from) : prefix(from) {}
  LayoutChoice prefix;
  std::vector<Entry> entries;  // until they are taken
  std::vector<BoundedLayout> too_large;
  std::optional<BoundedLayout> smallest;  // of those that do not fit
  SpaceCount count;
  std::int64_t cut_by_memory = 0;
  bool walked = false;  // to its end
};

void keep_fastest(std::vector<BoundedLayout>& list) {
  std::sort(list.begin(), list.end());
  if (list.size() > kShownTooLarge) list.resize(kShownTooLarge);
}

void keep_smaller(const std::optional<BoundedLayout>& other,
                  std::optional<BoundedLayout>& smallest) {
  if (other && (!smallest || other->device_bytes < smallest->device_bytes)) smallest = other;
}

// No layout of the space takes less: its products on all GPUs, at the peak of their precision. 0
// where the data sheet has none.
double least_time_of_any(const Scenario& scenario) {
  const auto peak = scenario.cluster.spec.accelerator.peak(scenario.training.precision);
  if (!peak) return 0;
  const Flops products = model_flops(scenario, true) - model_attention_flops(scenario, true);
  return (products / *peak).value() / static_cast<double>(scenario.cluster.gpus());
}

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
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
  Errors open();
  void drop_opening_if_met();
  void bound_more();
  void bound_branch(Worker& worker, Branch& branch) const;
  void take_entries();
  void add_up_branches();
  std::vector<std::size_t> next_round(double below_s, ByteCount below_bytes) const;
  Errors replay(const std::vector<std::size_t>& round);
  Errors find_best();
  void bound_what_was_not_seen();
  Errors find_front();
  double last_place() const;
  // No layout whose bound is above it takes one of the first places.
  double last_bound() const { return last_place() * (1 + kNearTie) / least_rise_; }
  void put_in_places();
  // The moment when this part of the time that is left has passed; none without a limit.
  std::optional<Clock::time_point> after(double part) const;
  bool late() const { return end_ && Clock::now() > *end_; }
  bool ends() const { return stopped(options_) || late(); }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void report(double bound_s);

  const Space& space_;
  const PricingByFramework& pricing_;
  const SearchOptions& options_;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> end_;  // of the present part of the search
  LayoutChoice opening_;                  // that was found before all were looked at
  bool met_opening_ = false;              // among the leaves
  std::vector<Branch> branches_;
  std::vector<std::size_t> order_;  // that they are walked in
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Entry> entries_;  // best first
  std::size_t first_open_ = 0;  // entries before it are replayed
  bool bounded_all_ = false;
  double least_rise_ = 1;  // of the quantile that ranks above the step time
  SearchResult out_;
};

std::optional<Clock::time_point> Search::after(double part) const {
  const auto now = Clock::now();
  std::optional<Clock::time_point> end = options_.deadline;
  if (options_.time_limit_s > 0) {
    const auto limit = start_ + seconds(options_.time_limit_s);
    end = end ? std::min(*end, limit) : limit;
  }
  if (!end || *end < now) return end;
  return now + seconds(part * std::chrono::duration<double>(*end - now).count());
}

void Search::report(double bound_s) {
  if (!options_.progress) return;
  const auto behind = std::partition_point(
      entries_.begin(), entries_.end(),
      [last = last_bound()](const Entry& entry) { return entry.bound_s < last; });
  const auto open = behind - entries_.begin() - static_cast<std::ptrdiff_t>(first_open_);
  SearchProgress now{elapsed(), out_.bounded, out_.replayed, std::max<std::ptrdiff_t>(0, open),
                     0,         bound_s};
  if (!out_.found.empty()) {
    now.best_s = out_.found.front().prediction.step_time.value();
    now.best = out_.found.front().choice;
  }
  options_.progress(now);
}

// A branch that is cut short gives what was seen of it, and is walked anew if there is more time.
void Search::bound_branch(Worker& worker, Branch& branch) const {
  branch = Branch(branch.prefix);
  const auto visit = [&](const LayoutChoice& choice) {
    const Bound bound = worker.bounds.bound();
    const BoundedLayout layout{bound.time_s, bound.device_bytes, choice};
    if (layout.device_bytes <= out_.memory_limit) {
      branch.entries.push_back({layout});
      return;
    }
    ++branch.cut_by_memory;
    keep_smaller(layout, branch.smallest);
    const auto limit = static_cast<double>(out_.memory_limit);
    if (static_cast<double>(layout.device_bytes) > kNearMiss * limit) return;
    branch.too_large.push_back(layout);
    if (branch.too_large.size() > 64 * kShownTooLarge) keep_fastest(branch.too_large);
  };
  bool cut_short = false;
  branch.count = space_.walk(branch.prefix, worker.scenario, visit, [&] {
    cut_short = cut_short || ends();
    return cut_short;
  });
  branch.walked = !cut_short;
  keep_fastest(branch.too_large);
}

// Finds some layout that fits and replays it, before all are looked at.
Errors Search::open() {
  const std::optional<Clock::time_point> soon = after(kOpeningShare);
  if (!soon) return {};
  Worker& worker = *workers_.front();
  BranchDescent descent(space_, worker.scenario, worker.bounds, out_.memory_limit);
  std::vector<Entry> found;
  const auto latest = std::max(*after(1), start_ + seconds(options_.first_answer_s));
  for (const std::size_t i : order_) {
    const bool fits = !found.empty();
    if (stopped(options_) || Clock::now() > (fits ? *soon : latest)) break;
    const auto layout = descent.descend(branches_[i].prefix);
    if (layout && layout->bound_s > 0 && layout->device_bytes <= out_.memory_limit) {
      found.push_back({*layout});
    }
  }
  std::sort(found.begin(), found.end());
  entries_ = std::move(found);
  end_ = latest;
  for (std::size_t i = 0; i < entries_.size() && out_.found.empty() && !late(); ++i) {
    if (Errors errors = replay({i}); !errors.empty()) return errors;
  }
  std::erase_if(entries_, [](const Entry& entry) { return !entry.replayed; });
  if (!out_.found.empty()) opening_ = out_.found.front().choice;
  return {};
}

// The layout that the search began with may be no leaf of the tree: it has keys that say nothing
// there. The leaf that is forecast alike stands for it then.
void Search::drop_opening_if_met() {
  if (met_opening_) return;
  const auto own = std::ranges::find(out_.found, opening_, &FoundLayout::choice);
  if (own == out_.found.end()) return;
  const bool met = std::ranges::any_of(out_.found, [&](const FoundLayout& other) {
    return other.choice != own->choice && share_place(other.prediction, own->prediction);
  });
  if (met) out_.found.erase(own);
}

// Bounds the branches that are left, for as long as this part of the search lasts.
void Search::bound_more() {
  std::vector<std::size_t> left = order_;
  std::erase_if(left, [&](std::size_t i) { return branches_[i].walked; });
  std::mutex mutex;
  run_in_parallel(
      options_.threads, left.size(),
      [&](std::size_t worker, std::size_t at) {
        Branch& branch = branches_[left[at]];
        const std::int64_t before = branch.count.legal;
        bound_branch(*workers_[worker], branch);
        const std::lock_guard lock(mutex);
        out_.bounded += branch.count.legal - before;
        report(0);
      },
      [this] { return ends(); });
  bounded_all_ = std::ranges::all_of(branches_, &Branch::walked);
  take_entries();
}

// Layouts that were seen before stay as they are.
void Search::take_entries() {
  for (Branch& branch : branches_) {
    met_opening_ = met_opening_ || std::ranges::find(branch.entries, opening_, &Entry::choice) !=
                                       branch.entries.end();
    entries_.insert(entries_.end(), branch.entries.begin(), branch.entries.end());
    branch.entries = {};
  }
  std::sort(entries_.begin(), entries_.end());
  const auto seen = [](const Entry& one, const Entry& other) { return one.choice == other.choice; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), seen), entries_.end());
  first_open_ = 0;
  while (first_open_ < entries_.size() && entries_[first_open_].replayed) ++first_open_;
}

void Search::add_up_branches() {
  for (const Branch& branch : branches_) {
    out_.space.add(branch.count);
    out_.cut_by_memory += branch.cut_by_memory;
    keep_smaller(branch.smallest, out_.smallest);
    out_.too_large.insert(out_.too_large.end(), branch.too_large.begin(), branch.too_large.end());
  }
  keep_fastest(out_.too_large);
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
      out_.too_large.push_back({entry.bound_s, prediction.peak_device, entry.choice});
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
      out_.bound_s = 0;
      if (!bounded_all_) bound_what_was_not_seen();
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
  if (!round.empty()) out_.bound_s = entries_[round.front()].bound_s;
  if (!bounded_all_) bound_what_was_not_seen();
  return {};
}

void Search::bound_what_was_not_seen() {
  const double least = least_time_of_any(space_.base());
  out_.bound_s = out_.bound_s > 0 ? std::min(out_.bound_s, least) : least;
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
  const std::vector<LayoutChoice> prefixes = space_.branches(out_.space);
  for (const LayoutChoice& prefix : prefixes) branches_.emplace_back(prefix);
  order_ = by_promise(prefixes, space_, out_.memory_limit, workers_.front()->scenario);
  if (Errors errors = open(); !errors.empty()) return failure(std::move(errors));
  do {
    end_ = after(kBoundsShare);
    bound_more();
    end_ = after(1);
    if (Errors errors = find_best(); !errors.empty()) return failure(std::move(errors));
  } while (!bounded_all_ && !ends());
  drop_opening_if_met();
  add_up_branches();
  if (Errors errors = find_front(); !errors.empty()) return failure(std::move(errors));
  put_in_places();
  keep_fastest(out_.too_large);
  out_.interrupted = !out_.proven && (!bounded_all_ || ends());
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

bool stopped(const SearchOptions& options) { return options.stop && options.stop(); }

bool is_over(const SearchOptions& options) {
  if (stopped(options)) return true;
  return options.deadline && Clock::now() > *options.deadline;
}

void share_time_limit(SearchOptions& options) {
  if (options.time_limit_s <= 0) return;
  const auto end = Clock::now() + seconds(options.time_limit_s);
  options.deadline = options.deadline ? std::min(*options.deadline, end) : end;
  options.time_limit_s = 0;
}

SearchOptions with_share_of_time(const SearchOptions& options, std::size_t parts) {
  SearchOptions out = options;
  share_time_limit(out);
  if (!out.deadline) return out;
  const auto now = Clock::now();
  out.deadline = now + (*out.deadline - now) / static_cast<std::int64_t>(parts);
  return out;
}

Result<SearchResult> search(const Space& space, const PricingByFramework& pricing,
                            const SearchOptions& options) {
  return Search(space, pricing, options).run();
}

}  // namespace stepcast
