// SPDX-License-Identifier: Apache-2.0
#include "plan/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "core/parallel.h"
#include "plan/bound.h"
#include "plan/branch_descent.h"
#include "plan/branch_order.h"
#include "plan/tree_worker.h"
#include "predict/interval.h"

namespace stepcast {
namespace {

constexpr std::size_t kRound = 32;         // replays between two looks at the best
constexpr std::size_t kParts = 64;         // partial layouts that are looked into at once
constexpr std::size_t kBranches = 256;     // branches of the tree, likewise
constexpr std::size_t kShownTooLarge = 8;  // of the layouts that do not fit

// Parts of the time that is left, for the search for some layout and for bounds.
constexpr double kOpeningShare = 0.1;
constexpr double kBoundsShare = 0.5;

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
    const double memory = static_cast<double>(space.base().cluster.spec.accelerator.memory);
    out_.memory_limit = static_cast<ByteCount>(memory * (1 - options.memory_margin));
    for (int i = 0; i < std::max(1, options.threads); ++i) {
      workers_.push_back(std::make_unique<TreeWorker>(space, pricing, out_.memory_limit));
    }
  }

  Result<SearchResult> run();

 private:
  // The layouts of this round, or the partial ones to look into before any of it is replayed.
  struct Round {
    std::vector<Node> layouts, parts;
  };
  TreeWorker& first() { return *workers_.front(); }

  Errors open();
  void drop_opening_if_met();
  void expand(const std::vector<Node>& nodes);
  void expand_branches();
  void take(Expansion expansion);
  Round next_round(double below_s, ByteCount below_bytes);
  Round next_round() { return next_round(last_bound(), out_.memory_limit); }
  Errors replay(const std::vector<Node>& round);
  Errors advance(const Round& round);
  Errors find_best();
  Errors find_front();
  void find_near_misses();
  Errors replay_start();
  void find_smallest();
  void add_up();
  double last_place() const;
  // No layout whose bound is above it takes one of the first places.
  double last_bound() const { return last_place() * (1 + kNearTie) / least_rise_; }
  void note_places();
  bool may_take_place(const Node& node);
  std::pair<int, int> weight(const Node& layout);  // less is simpler
  void keep_promising(std::size_t most, std::vector<Node>& layouts);
  double least_open() { return least_open(next_round()); }
  double least_open(const Round& left);
  bool is_close_enough(const Round& left) {
    if (options_.prove || options_.close_enough == 0) return false;
    return last_place() <= least_open(left) * (1 + options_.close_enough);
  }
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
  std::vector<LayoutChoice> opened_;      // replayed before all were looked at
  std::optional<LayoutChoice> opening_;   // that was found before all were looked at
  bool met_opening_ = false;              // among the leaves
  std::vector<LayoutChoice> branches_;    // to look into, in this order
  std::vector<std::unique_ptr<TreeWorker>> workers_;
  std::set<Node> open_;                   // that may fit; fastest by bound first
  std::vector<Node> large_;               // that do not fit
  std::vector<BoundedLayout> too_large_;  // layouts whose replay did not fit
  Errors unaffordable_;                   // why a layout was not replayed (predict/budget.h)
  double least_rise_ = 1;                 // of the quantile that ranks above the step time
  // The first places as they are now: who holds each, and the least value that it is near.
  struct Place {
    double best_s, value_s, bound_s;
    Simplicity simplicity;
  };
  std::vector<Place> places_;
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
  SearchProgress now{elapsed(), out_.bounded + out_.subtrees, out_.replayed, 0, 0, bound_s};
  for (const Node& node : open_) {
    if (node.bound_s >= last_bound()) break;
    now.open += node.is_layout ? 1 : 0;
  }
  if (!out_.found.empty()) {
    now.best_s = out_.found.front().prediction.step_time.value();
    now.best = out_.found.front().choice;
  }
  options_.progress(now);
}

Errors Search::replay_start() {
  if (options_.start == nullptr) return {};
  const auto choice = space_.choice_of(*options_.start, first().scenario());
  if (!choice) return {};
  const Bound bound = first().bounds().bound();
  opened_.push_back(*choice);
  Errors errors = replay({{{bound.time_s, bound.device_bytes, *choice}, bound.time_s, 0, true}});
  out_.replayed = 0;  // it takes none of the replays that were asked for
  return errors;
}

// Replays the layout to start from, or else some layout that fits, before all are looked at.
Errors Search::open() {
  if (Errors errors = replay_start(); !errors.empty()) return errors;
  if (!out_.found.empty()) opening_ = out_.found.front().choice;
  const std::optional<Clock::time_point> soon = after(kOpeningShare);
  if (!soon || opening_) return {};
  BranchDescent descent(space_, first().scenario(), first().bounds(), out_.memory_limit);
  std::vector<Node> found;
  const auto latest = std::max(*after(1), start_ + seconds(options_.first_answer_s));
  for (const LayoutChoice& branch : branches_) {
    const bool fits = !found.empty();
    if (stopped(options_) || Clock::now() > (fits ? *soon : latest)) break;
    const auto layout = descent.descend(branch);
    if (layout && layout->bound_s > 0 && layout->device_bytes <= out_.memory_limit) {
      found.push_back({*layout, layout->bound_s, 0, true});
    }
  }
  std::sort(found.begin(), found.end());
  end_ = latest;
  for (std::size_t i = 0; i < found.size() && out_.found.empty() && !late(); ++i) {
    opened_.push_back(found[i].choice);
    if (Errors errors = replay({found[i]}); !errors.empty()) return errors;
  }
  if (!out_.found.empty()) opening_ = out_.found.front().choice;
  return {};
}

// The layout that the search began with may be no leaf of the tree: it has keys that say nothing
// there. The leaf that is forecast alike stands for it then.
void Search::drop_opening_if_met() {
  if (met_opening_ || !opening_) return;
  const auto own = std::ranges::find(out_.found, *opening_, &FoundLayout::choice);
  if (own == out_.found.end()) return;
  const bool met = std::ranges::any_of(out_.found, [&](const FoundLayout& other) {
    return other.choice != own->choice && share_place(other.prediction, own->prediction);
  });
  if (met) out_.found.erase(own);
}

void Search::take(Expansion expansion) {
  out_.space.add(expansion.count);
  for (Node& node : expansion.nodes) {
    ++(node.is_layout ? out_.bounded : out_.subtrees);
    if (node.is_layout && std::ranges::find(opened_, node.choice) != opened_.end()) {
      met_opening_ = met_opening_ || node.choice == opening_;
    } else if (node.device_bytes > out_.memory_limit) {
      large_.push_back(std::move(node));
    } else {
      open_.insert(std::move(node));
    }
  }
}

void Search::expand(const std::vector<Node>& nodes) {
  std::vector<Expansion> expansions(nodes.size());
  run_in_parallel(options_.threads, nodes.size(), [&](std::size_t worker, std::size_t i) {
    expansions[i] = workers_[worker]->expand(nodes[i]);
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    open_.erase(nodes[i]);
    take(std::move(expansions[i]));
  }
}

// Looks into branches of the tree for as long as this part of the search lasts.
void Search::expand_branches() {
  while (!branches_.empty() && !ends()) {
    const std::size_t count = std::min(kBranches, branches_.size());
    std::vector<Expansion> expansions(count);
    run_in_parallel(
        options_.threads, count,
        [&](std::size_t worker, std::size_t i) {
          expansions[i] = workers_[worker]->expand_branch(branches_[i], [this] { return ends(); });
        },
        [this] { return ends(); });
    std::vector<LayoutChoice> left;
    for (std::size_t i = 0; i < count; ++i) {
      if (!expansions[i].whole) {
        left.push_back(branches_[i]);
      } else {
        take(std::move(expansions[i]));
      }
    }
    left.insert(left.end(), branches_.begin() + static_cast<std::ptrdiff_t>(count),
                branches_.end());
    branches_ = std::move(left);
    report(0);
  }
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

// Puts down who would stand in the first places if nothing else were found.
void Search::note_places() {
  std::vector<double> values;
  std::vector<Simplicity> simplicities;
  for (FoundLayout& found : out_.found) {
    if (!found.is_weighed) {
      found.simplicity =
          simplicity(space_, found.choice, found.prediction.peak_device, first().scenario());
      found.is_weighed = true;
    }
    values.push_back(found.ranked_s);
    simplicities.push_back(found.simplicity);
  }
  const std::vector<std::size_t> order = order_of_places(values, simplicities);
  places_.clear();
  // The least value of those that stand behind a place.
  std::vector<double> least(order.size() + 1, std::numeric_limits<double>::infinity());
  for (std::size_t i = order.size(); i > 0; --i) {
    least[i - 1] = std::min(least[i], values[order[i - 1]]);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const FoundLayout& found = out_.found[order[i]];
    const bool shares = i > 0 && share_place(out_.found[order[i - 1]].prediction, found.prediction);
    if (shares) continue;
    if (static_cast<std::int64_t>(places_.size()) == options_.top) return;
    places_.push_back({least[i], values[order[i]], found.bound_s, found.simplicity});
  }
}

std::pair<int, int> Search::weight(const Node& layout) {
  if (!layout.simplicity) {
    layout.simplicity = simplicity(space_, layout.choice, 0, first().scenario());
  }
  return {layout.simplicity->axes, layout.simplicity->flags};
}

// A layout near the best of a place takes it if it is simpler than who holds it. One that is not,
// and no faster than the best, changes no place: it need not be replayed.
bool Search::may_take_place(const Node& node) {
  if (static_cast<std::int64_t>(places_.size()) < options_.top) return true;
  const double value = node.bound_s * least_rise_;  // at least
  return std::ranges::any_of(places_, [&](const Place& place) {
    if (value < place.best_s) return true;
    if (value > place.best_s * (1 + kNearTie)) return false;
    const auto held = std::pair(place.simplicity.axes, place.simplicity.flags);
    return weight(node) < held || (weight(node) == held && value <= place.value_s) ||
           node.bound_s == place.bound_s;
  });
}

// If few are to be replayed, half of them are those with the least bounds, and half the simplest
// of those that may be near ties of the first.
void Search::keep_promising(std::size_t most, std::vector<Node>& layouts) {
  if (layouts.size() <= most) return;
  const double near = layouts.front().bound_s * (1 + kNearTie);
  const auto rest = layouts.begin() + static_cast<std::ptrdiff_t>(most - most / 2);
  const auto far =
      std::find_if(rest, layouts.end(), [&](const Node& node) { return node.bound_s > near; });
  std::stable_sort(rest, far, [&](const Node& a, const Node& b) { return weight(a) < weight(b); });
  layouts.erase(layouts.begin() + static_cast<std::ptrdiff_t>(most), layouts.end());
}

// The least bounds, below both limits. A layout waits until the partial ones before it are looked
// into.
Search::Round Search::next_round(double below_s, ByteCount below_bytes) {
  Round out;
  // No more than are to be replayed, unless none of those fits.
  const std::int64_t left = options_.replays - out_.replayed;
  const std::size_t most =
      options_.prove || left <= 0 ? kRound : std::min(kRound, static_cast<std::size_t>(left));
  for (const Node& node : open_) {
    if (node.bound_s >= below_s || out.layouts.size() == kRound || out.parts.size() == kParts)
      break;
    if (node.device_bytes > below_bytes) continue;
    if (!node.is_layout) {
      out.parts.push_back(node);
    } else if (below_bytes < out_.memory_limit || may_take_place(node)) {
      out.layouts.push_back(node);
    }
  }
  if (out.parts.empty()) keep_promising(most, out.layouts);
  return out;
}

Errors Search::replay(const std::vector<Node>& round) {
  std::vector<Result<Prediction>> predictions(round.size(), Result<Prediction>(Prediction{}));
  std::vector<char> done(round.size(), 0);
  PredictOptions options;
  options.stop = [this] { return late(); };
  run_in_parallel(
      options_.threads, round.size(),
      [&](std::size_t worker, std::size_t i) {
        Scenario& scenario = workers_[worker]->scenario();
        space_.put(round[i].choice, scenario);
        predictions[i] = predict(scenario, *pricing_[scenario.training.framework], options);
        done[i] = predictions[i] || !predictions[i].error().empty() ? 1 : 0;
      },
      options.stop);
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (done[i] == 0) continue;
    const Node& node = round[i];
    open_.erase(node);
    ++out_.replayed;
    if (!predictions[i]) {
      const Errors& errors = predictions[i].error();
      if (errors.front().code != ErrorCode::kTooMuch) return errors;
      unaffordable_ = errors;  // others may need less
      continue;
    }
    Prediction& prediction = *predictions[i];
    if (prediction.peak_device > out_.memory_limit) {
      ++out_.replayed_too_large;
      too_large_.push_back({node.bound_s, prediction.peak_device, node.choice});
    } else {
      const double ranked = quantile(prediction, options_.risk).value();
      out_.found.push_back({node.choice, node.bound_s, ranked, {}, std::move(prediction)});
    }
  }
  std::sort(out_.found.begin(), out_.found.end(), [](const FoundLayout& a, const FoundLayout& b) {
    return a.ranked_s != b.ranked_s ? a.ranked_s < b.ranked_s : a.choice < b.choice;
  });
  note_places();
  return {};
}

Errors Search::advance(const Round& round) {
  if (!round.parts.empty()) {
    expand(round.parts);
    return {};
  }
  return replay(round.layouts);
}

Errors Search::find_best() {
  // That none of the first replays fits does not say that none of the others does.
  while (options_.prove || out_.replayed < options_.replays || out_.found.empty()) {
    const Round round = next_round();
    if (round.parts.empty() && round.layouts.empty()) break;
    if (ends() && (out_.replayed > 0 || late())) break;
    if (is_close_enough(round)) break;
    if (Errors errors = advance(round); !errors.empty()) return errors;
    report(least_open());
  }
  const Round left = next_round();
  out_.proven =
      branches_.empty() && left.parts.empty() && left.layouts.empty() && unaffordable_.empty();
  out_.bound_s = least_open();
  return {};
}

// The least bound of what is left and may take a place; 0 when nothing is.
double Search::least_open(const Round& left) {
  double out = std::numeric_limits<double>::infinity();
  for (const std::vector<Node>* nodes : {&left.parts, &left.layouts}) {
    if (!nodes->empty()) out = std::min(out, nodes->front().bound_s);
  }
  if (!branches_.empty()) out = std::min(out, least_time_of_any(space_.base()));
  return std::isfinite(out) ? out : 0;
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
      const Round round = next_round(best != nullptr ? best->prediction.step_time.value()
                                                     : std::numeric_limits<double>::infinity(),
                                     limit);
      if ((round.parts.empty() && round.layouts.empty()) || ends()) break;
      if (Errors errors = advance(round); !errors.empty()) return errors;
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

// The fastest of the layouts that miss the limit by little and might be faster than the last place.
// They lie behind partial layouts that fell as a whole, and are looked for by the least bound.
void Search::find_near_misses() {
  const auto by_time = [](const Node& a, const Node& b) {
    return a.any_time_s != b.any_time_s ? a.any_time_s < b.any_time_s : a.choice < b.choice;
  };
  std::set<Node, decltype(by_time)> left(by_time);
  const double most_bytes = kNearMiss * static_cast<double>(out_.memory_limit);
  const auto consider = [&](const Node& node) {
    const bool is_near = static_cast<double>(node.device_bytes) <= most_bytes;
    const bool may_miss = !node.is_layout || node.device_bytes > out_.memory_limit;
    if (is_near && may_miss && node.any_time_s < last_bound()) left.insert(node);
  };
  for (const Node& node : large_) consider(node);
  for (const Node& node : open_) consider(node);
  out_.too_large = too_large_;
  while (!left.empty() && out_.too_large.size() < too_large_.size() + kShownTooLarge) {
    const Node node = *left.begin();
    left.erase(left.begin());
    if (node.is_layout) {
      out_.too_large.push_back(node);
    } else if (!ends()) {
      const Expansion expansion = first().expand(node);
      for (const Node& behind : expansion.nodes) consider(behind);
    }
  }
  keep_fastest(out_.too_large);
}

// Finds the one that needs least of all layouts that do not fit.
void Search::find_smallest() {
  const auto by_memory = [](const Node& a, const Node& b) {
    return std::tie(a.device_bytes, a.choice) < std::tie(b.device_bytes, b.choice);
  };
  std::set<Node, decltype(by_memory)> left(large_.begin(), large_.end(), by_memory);
  while (!left.empty() && !left.begin()->is_layout && !ends()) {
    const Node node = *left.begin();
    left.erase(left.begin());
    Expansion expansion = first().expand(node);
    out_.space.add(expansion.count);
    left.insert(expansion.nodes.begin(), expansion.nodes.end());
  }
  if (!left.empty() && left.begin()->is_layout) keep_smaller(*left.begin(), out_.smallest);
  for (const BoundedLayout& layout : too_large_) keep_smaller(layout, out_.smallest);
}

// Counts the combinations that fell.
void Search::add_up() {
  std::vector<LayoutChoice> too_large, too_slow;
  for (const Node& node : large_) too_large.push_back(node.choice);
  for (const Node& node : open_) too_slow.push_back(node.choice);
  too_slow.insert(too_slow.end(), branches_.begin(), branches_.end());
  out_.cut_by_memory = space_.combinations_behind(too_large);
  (out_.proven ? out_.cut_by_time : out_.left_open) = space_.combinations_behind(too_slow);
}

Result<SearchResult> Search::run() {
  least_rise_ = least_rise(options_.risk);
  out_.combinations = space_.combinations();
  const std::vector<LayoutChoice> prefixes = space_.branches(out_.space);
  for (const std::size_t i : by_promise(prefixes, space_, out_.memory_limit, first().scenario())) {
    branches_.push_back(prefixes[i]);
  }
  if (Errors errors = open(); !errors.empty()) return failure(std::move(errors));
  do {
    end_ = after(kBoundsShare);
    expand_branches();
    end_ = after(1);
    if (Errors errors = find_best(); !errors.empty()) return failure(std::move(errors));
  } while (!branches_.empty() && !ends());
  if (out_.found.empty() && !unaffordable_.empty()) return failure(unaffordable_);
  drop_opening_if_met();
  if (Errors errors = find_front(); !errors.empty()) return failure(std::move(errors));
  find_near_misses();
  if (out_.found.empty()) find_smallest();
  add_up();
  std::vector<double> values;
  for (const FoundLayout& found : out_.found) values.push_back(found.ranked_s);
  put_in_order(values, out_);
  out_.interrupted = !out_.proven && (!branches_.empty() || ends());
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
