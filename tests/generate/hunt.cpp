// SPDX-License-Identifier: Apache-2.0
#include "generate/hunt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>

#include "core/parallel.h"
#include "layout/keys.h"

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
