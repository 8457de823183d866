// SPDX-License-Identifier: Apache-2.0
#include "generate/hunt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>

#include "core/parallel.h"
#include "layout/axis_group.h"
#include "layout/framework.h"
#include "layout/keys.h"
#include "layout/scenario.h"
#include "schedule/schedule.h"

namespace stepcast::generate {
namespace {

// Names what this thread is at, for whoever stops the program.
thread_local char current[160] = "nothing";

void tell_where(int signal) {
  const auto written = ::write(STDERR_FILENO, current, std::char_traits<char>::length(current));
  static_cast<void>(written);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Hunt {
 public:
  explicit Hunt(const HuntOptions& options) : options_(options) {}

  HuntResult run() {
    for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, tell_where);
    std::vector<std::vector<Violation>> found(options_.count);
    run_in_parallel(options_.threads, options_.count, [&](std::size_t, std::size_t i) {
      found[i] = examine(options_.from + i);
      if (options_.progress) options_.progress(++done_);
    });
    for (auto& violations : found) {
      for (Violation& one : violations) out_.violations.push_back(std::move(one));
    }
    return std::move(out_);
  }

 private:
  std::vector<Violation> examine(std::uint64_t index) {
    say(index, "draw");
    LegalScenario drawn = draw_scenario(options_.seed, index);
    Case c(drawn);
    std::vector<Violation> violations;
    std::map<std::string, Tally> tallies;
    for (const Property* property : options_.properties) {
      if (!is_asked(*property, index)) continue;
      // A scenario without a forecast is one violation, not one of every property.
      if (property != properties().data() && !c.forecast()) continue;
      say(index, property->name.c_str());
      const auto begin = std::chrono::steady_clock::now();
      Verdict verdict = ask(*property, c);
      Tally& tally = tallies[property->name];
      tally.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      tally.asked = 1;
      tally.applied = verdict.kind == Verdict::kDoesNotApply ? 0 : 1;
      tally.excepted = verdict.kind == Verdict::kExcepted ? 1 : 0;
      tally.violated = verdict.kind == Verdict::kViolated ? 1 : 0;
      if (tally.violated > 0) violations.push_back({drawn, property, std::move(verdict)});
    }
    add(drawn, tallies);
    return violations;
  }

  void say(std::uint64_t index, const char* what) {
    *fmt::format_to_n(current, sizeof current - 2, "stopped in --seed {} --from {} at {}\n",
                      options_.seed, index, what)
         .out = '\0';
  }

  void add(const LegalScenario& drawn, const std::map<std::string, Tally>& tallies) {
    const std::vector<std::string> stated = stated_keys(drawn.text);
    const std::lock_guard lock(mutex_);
    ++out_.scenarios;
    out_.attempts += static_cast<std::uint64_t>(drawn.attempts);
    for (const std::string& key : stated) ++out_.keys[key];
    for (const std::string& choice : drawn_choices(drawn)) ++out_.choices[choice];
    for (const auto& [name, one] : tallies) {
      Tally& sum = out_.tallies[name];
      sum.asked += one.asked;
      sum.applied += one.applied;
      sum.excepted += one.excepted;
      sum.violated += one.violated;
      sum.seconds += one.seconds;
    }
  }

  const HuntOptions& options_;
  std::atomic<std::uint64_t> done_ = 0;
  std::mutex mutex_;
  HuntResult out_;
};

}  // namespace

HuntResult hunt(const HuntOptions& options) { return Hunt(options).run(); }

namespace {

bool has_unequal_nodes(const Cluster& cluster) {
  std::map<std::int64_t, std::int64_t> gpus;  // by node
  for (std::int64_t gpu = 0; gpu < cluster.gpus(); ++gpu)
    ++gpus[cluster.node_of(DeviceId(static_cast<std::int32_t>(gpu)))];
  return std::ranges::any_of(gpus,
                             [&](const auto& node) { return node.second != gpus.begin()->second; });
}

constexpr const char* kUnequal = "unequal nodes";
constexpr const char* kFailed = "failed or slow parts";
constexpr const char* kCopies = "several copies of the states";
constexpr const char* kOwnCopy = "each rank with a copy of the states";
constexpr const char* kAdapters = "adapters";
constexpr const char* kPacked = "packed documents";
constexpr const char* kOffload = "offloaded states";
constexpr const char* kOffloadActivations = "offloaded activations";

constexpr std::pair<MoeDispatcher, const char*> kDispatchers[] = {
    {MoeDispatcher::kAllGather, "dispatcher allgather"},
    {MoeDispatcher::kAllToAll, "dispatcher alltoall"},
    {MoeDispatcher::kFlex, "dispatcher flex"},
    {MoeDispatcher::kDeepEp, "dispatcher deepep"},
    {MoeDispatcher::kHybridEp, "dispatcher hybridep"}};

}  // namespace

std::vector<std::string> all_choices() {
  std::vector<std::string> out = {kUnequal,  kFailed, kCopies,  kOwnCopy,
                                  kAdapters, kPacked, kOffload, kOffloadActivations};
  for (const Schedule* schedule : schedules()) {
    if (schedule->is_made()) out.push_back(fmt::format("schedule {}", schedule->name));
  }
  for (const FrameworkTraits* framework : frameworks()) {
    out.push_back(fmt::format("framework {}", framework->name));
  }
  for (const auto& [dispatcher, choice] : kDispatchers) out.emplace_back(choice);
  return out;
}

std::vector<std::string> drawn_choices(const LegalScenario& drawn) {
  const Scenario& s = drawn.scenario;
  std::vector<std::string> out;
  const auto add = [&](bool has, const char* choice) {
    if (has) out.emplace_back(choice);
  };
  const std::int64_t copies = size_of(AxisGroup::kDataCopies, s.layout);
  add(has_unequal_nodes(s.cluster), kUnequal);
  add(!s.cluster.spec.failed.empty(), kFailed);
  add(copies > 1, kCopies);
  add(copies > 1 && copies == size_of(AxisGroup::kData, s.layout), kOwnCopy);
  add(s.training.trains_adapters(), kAdapters);
  add(s.training.document_length > 0, kPacked);
  add(s.layout.offload.optimizer > 0, kOffload);
  add(s.layout.offload.activations > 0, kOffloadActivations);
  out.push_back(fmt::format("schedule {}", rules_of(s.layout.schedule).name));
  out.push_back(fmt::format("framework {}", traits_of(s.training.framework).name));
  for (const auto& [dispatcher, choice] : kDispatchers) {
    add(s.model.moe && s.model.moe->dispatcher == dispatcher, choice);
  }
  return out;
}

std::vector<std::string> stated_keys(const std::string& text) {
  const auto file = nlohmann::json::parse(text);
  std::vector<std::string> out;
  for (const Key* key : keys()) {
    std::string pointer = std::string("/") + key->path;
    std::ranges::replace(pointer, '.', '/');
    if (file.contains(nlohmann::json::json_pointer(pointer))) out.emplace_back(key->path);
  }
  return out;
}

}  // namespace stepcast::generate
