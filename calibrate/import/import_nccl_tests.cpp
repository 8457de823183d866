// SPDX-License-Identifier: Apache-2.0
// The text that NVIDIA's nccl-tests print, as people paste it: with the command above it, quoted,
// indented, behind a launcher's tags, several runs in one file.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>

#include "calibrate/device_name.h"
#include "calibrate/import/bus_bandwidth.h"
#include "calibrate/import/imported.h"
#include "calibrate/import/plausible.h"
#include "core/limits.h"

namespace stepcast {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::size_t kGroup = 4;  // time, algbw, busbw, #wrong
// Above this a bandwidth is printed to one part in a hundred or better.
constexpr double kPrecise = 1;
constexpr double kRatioTolerance = 0.03;

Words split(std::string_view line) {
  Words out;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

template <class T>
std::optional<T> parse(std::string_view word) {
  T value{};
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
  return whole ? std::optional<T>(value) : std::nullopt;
}

// Cuts off what launchers and mails put in front: "[1,0]<stdout>:", "[0] ", "12: ", "> ".
std::string_view untagged(std::string_view line) {
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t>|"), line.size()));
    if (line.starts_with('[')) {
      const std::size_t end = line.find_first_of("]");
      if (end == std::string_view::npos) return line;
      line.remove_prefix(end + 1);
      if (line.starts_with("<stdout>:")) line.remove_prefix(9);
      continue;
    }
    const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    if (digits == 0 || digits == line.size() || line[digits] != ':') return line;
    line.remove_prefix(digits + 1);
  }
}

struct Test {
  const char* name;
  std::optional<CollectiveKind> kind;  // none: no program of ours has such an operation
};
constexpr Test kTests[] = {{"all_reduce", CollectiveKind::kAllReduce},
                           {"all_gather", CollectiveKind::kAllGather},
                           {"reduce_scatter", CollectiveKind::kReduceScatter},
                           {"alltoall", CollectiveKind::kAllToAll},
                           {"broadcast", CollectiveKind::kBroadcast},
                           {"sendrecv", CollectiveKind::kSendReceive},
                           {"reduce", std::nullopt},
                           {"gather", std::nullopt},
                           {"scatter", std::nullopt},
                           {"hypercube", std::nullopt}};

// The longest name that `fits`: "all_reduce" ends with "reduce".
template <class Fits>
const Test* longest(Fits fits) {
  const Test* best = nullptr;
  for (const Test& test : kTests) {
    const std::string_view name = test.name;
    const bool longer = best == nullptr || name.size() > std::string_view(best->name).size();
    if (longer && fits(name)) best = &test;
  }
  return best;
}

const Test* test_of_command(std::string_view text) {
  const std::size_t end = text.find("_perf");
  if (end == std::string_view::npos) return nullptr;
  return longest([&](std::string_view name) { return text.substr(0, end).ends_with(name); });
}

const Test* test_of_file(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return longest([&](std::string_view name) { return stem.find(name) != std::string::npos; });
}

class NcclTestsReader {
 public:
  NcclTestsReader(const std::string& file, const ClusterSpec& cluster, Imported& out)
      : file_(file), cluster_(cluster), out_(out), test_(test_of_file(file)) {}

  Errors read(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      read_line(untagged(line));
    }
    if (tables_ == 0 && errors_.empty()) {
      fail("holds no table of nccl-tests", "the lines from '# nThread' to the last size");
    }
    finish_table();
    if (kept_ == 0 && out_.left_out.empty() && errors_.empty()) {
      fail("holds no row of a table", "the lines up to the last size");
    }
    return std::move(errors_);
  }

 private:
  void read_line(std::string_view line) {
    if (line.starts_with('#')) {
      read_comment(line);
      return;
    }
    const Words words = split(line);
    if (words.empty()) return;
    const auto size = parse<double>(words.front());
    if (columns_ > 0 && size && words.size() + 2 >= columns_) {
      read_row(words, *size);
      return;
    }
    read_command(line, words);
  }

  // Reads what a command says of a run that prints no devices: GPUs per process, and the test.
  void read_command(std::string_view line, const Words& words) {
    const auto says = [&](std::string_view word) {
      return line.find(word) != std::string_view::npos;
    };
    const bool launched = says("mpirun") || says("mpiexec") || says("srun");
    const Test* test = test_of_command(line);
    if (!launched && test == nullptr) return;
    begin_run();
    several_processes_ = several_processes_ || launched;
    if (test == nullptr) return;
    test_ = test;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "-g") gpus_per_thread_ = parse<std::int64_t>(words[i + 1]).value_or(1);
    }
  }

  void begin_run() {
    if (columns_ == 0) return;  // the command's lines are above the header
    finish_table();
    hosts_.clear();
    ranks_listed_ = 0;
    several_processes_ = false;
    gpus_per_thread_ = 1;
  }

  void read_comment(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of("# \t"), line.size()));
    const Words words = split(line);
    if (words.empty()) return;
    // "Collective test starting: all_reduce_perf", of newer versions.
    if (const Test* test = test_of_command(line)) {
      begin_run();
      test_ = test;
    }
    if (words.front() == "nThread" && words.size() >= 4) {
      begin_run();
      gpus_per_thread_ = parse<std::int64_t>(words[3]).value_or(1);
    }
    if (words.front() == "Rank" && words.size() > 2) read_rank(line, words);
    if (words.front() == "size" && words.size() > 2 && words[1] == "count") read_header(words);
  }

  void read_rank(std::string_view line, const Words& words) {
    if (columns_ > 0) begin_run();
    ++ranks_listed_;
    const auto on = std::find(words.begin(), words.end(), "on");
    if (on != words.end() && on + 1 != words.end()) hosts_.emplace(*(on + 1));
    const std::size_t bus = line.rfind(']');
    const std::string device(bus == std::string_view::npos ? line : line.substr(bus + 1));
    if (names_device(device, cluster_.accelerator) || foreign_device_) return;
    foreign_device_ = true;  // one line is enough
    fail(fmt::format("was measured on '{}', and the cluster '{}' has {}",
                     device.substr(std::min(device.find_first_not_of(' '), device.size())),
                     cluster_.name, cluster_.accelerator.title),
         "name the cluster that was measured: --cluster");
  }

  void read_header(const Words& words) {
    if (columns_ > 0) finish_table();
    const auto last = words.end() - std::min<std::ptrdiff_t>(2 * kGroup, std::ssize(words));
    const bool known = words.size() >= 3 + 2 * kGroup && last[0] == "time" && last[1] == "algbw" &&
                       last[2] == "busbw" && last[kGroup] == "time";
    if (!known) {
      fail("has columns that are not known",
           "time, algbw, busbw and #wrong, out of place and in place");
      return;
    }
    columns_ = words.size();
    begin_table();
  }

  void begin_table() {
    table_ = {};
    ++tables_;
    if (test_ == nullptr) {
      fail("does not say which operation it measured",
           "keep the command above the table, or name the file after it: all_reduce_perf.txt");
      return;
    }
    if (!test_->kind) return;
    table_.kind = *test_->kind;
    table_.launch = gpus_per_thread_ > 1 ? Launch::kShared : Launch::kOwn;
    table_.ranks = ranks_listed_;
    table_.nodes = std::max<std::int64_t>(std::ssize(hosts_), 1);
    if (ranks_listed_ == 0 && !several_processes_) table_.ranks = gpus_per_thread_;
    if (table_.ranks < 2) {
      fail(ranks_listed_ == 1 ? "is of one rank, which communicates with nobody"
                              : "does not say how many GPUs took part",
           "keep the lines '# Rank ...' above the table");
    } else if (table_.ranks % table_.nodes != 0) {
      fail(fmt::format("{} ranks on {} hosts", table_.ranks, table_.nodes),
           "as many ranks on each host");
    }
  }

  void read_row(const Words& words, double size) {
    if (test_ == nullptr) return;
    if (!std::isfinite(size) || size < 0 || size != std::floor(size)) {
      fail(fmt::format("'{}' is no number of bytes", words.front()),
           "rows as nccl-tests print them");
      return;
    }
    if (!test_->kind) {
      ++out_.left_out[fmt::format("rows of {}_perf: no program has this operation", test_->name)];
      return;
    }
    const auto values = words.end() - 2 * kGroup;
    for (std::size_t half = 0; half < 2; ++half) {
      const auto cell = values + static_cast<std::ptrdiff_t>(half * kGroup);
      const auto time = parse<double>(cell[0]), algorithm = parse<double>(cell[1]),
                 bus = parse<double>(cell[2]);
      const bool numbers = time && algorithm && bus && std::isfinite(*time) &&
                           std::isfinite(*algorithm) && std::isfinite(*bus);
      if (!numbers || *time <= 0 || *algorithm < 0 || *bus < 0) {
        fail(fmt::format("'{}' is no time in us with its bandwidths", cell[0]),
             "rows as nccl-tests print them");
        return;
      }
      const auto wrong = parse<double>(cell[3]);
      if (cell[3] != "N/A" && (!wrong || *wrong != 0)) {
        fail(fmt::format("#wrong is {}: the collective's result was not right", cell[3]),
             "0 or N/A; leave out runs that fail their own check");
        return;
      }
      if (!check_bandwidths(size, *time, *algorithm, *bus)) return;
      if (size == 0) continue;
      const CollectiveSample sample{Bytes(size), Seconds(*time * 1e-6)};
      if (const auto why =
              why_implausible(cluster_, table_.kind, table_.ranks, table_.nodes, sample)) {
        fail(*why, "the cluster of --cluster, and rows as nccl-tests print them");
        return;
      }
      table_.samples.push_back(sample);
    }
    if (size == 0) ++out_.left_out["rows of nccl-tests that move no byte"];
  }

  // A table under the wrong command would pass for another operation or group, and a time in
  // another unit for another speed. One line of each kind is enough.
  bool check_bandwidths(double size, double time_us, double algorithm, double bus) {
    if (table_.ranks < 2 || algorithm < kPrecise || bus < kPrecise) return true;
    const double by_time = size / time_us * 1e-3;  // GB/s
    if (std::abs(algorithm / by_time - 1) > kRatioTolerance) {
      if (!wrong_time_) {
        fail(fmt::format("algbw is {:.4g} GB/s, and {:.0f} bytes in {:.4g} us are {:.4g} GB/s",
                         algorithm, size, time_us, by_time),
             "times are in us, and sizes in bytes");
      }
      wrong_time_ = true;
      return false;
    }
    const double expected = bus_factor(table_.kind, table_.ranks);
    if (std::abs(bus / algorithm / expected - 1) < kRatioTolerance) return true;
    if (!mismatch_) {
      fail(fmt::format("busbw/algbw is {:.3f}, and {:.3f} for {} among {} ranks", bus / algorithm,
                       expected, test_->name, table_.ranks),
           "the table belongs to another command or another number of GPUs");
    }
    mismatch_ = true;
    return false;
  }

  void finish_table() {
    columns_ = 0;
    mismatch_ = wrong_time_ = false;
    if (!table_.samples.empty()) {
      out_.collectives.push_back(std::move(table_));
      ++kept_;
    }
    table_ = {};
  }

  void fail(std::string message, std::string hint) {
    if (errors_.size() >= kMostErrorsKept) return;
    errors_.push_back({ErrorCode::kBadValue, std::move(message), fmt::format("{}:{}", file_, line_),
                       "", std::move(hint)});
  }

  const std::string& file_;
  const ClusterSpec& cluster_;
  Imported& out_;
  const Test* test_;
  std::int64_t line_ = 0;
  std::int64_t tables_ = 0, kept_ = 0;
  Errors errors_;

  // The run whose lines are being read is known by these.
  std::set<std::string, std::less<>> hosts_;
  std::int64_t ranks_listed_ = 0;
  std::int64_t gpus_per_thread_ = 1;
  bool several_processes_ = false;
  bool foreign_device_ = false;
  bool mismatch_ = false, wrong_time_ = false;
  std::size_t columns_ = 0;  // 0: not inside a table
  ImportedCollective table_;
};

}  // namespace

std::optional<CollectiveKind> kind_of_nccl_test(std::string_view test) {
  const auto found = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const Test& known) { return test == known.name; });
  return found == std::end(kTests) ? std::nullopt : found->kind;
}

Result<void> import_nccl_tests(const std::string& text, const std::string& file,
                               const ClusterSpec& cluster, Imported& out) {
  NcclTestsReader reader(file, cluster, out);
  Errors errors = reader.read(text);
  if (!errors.empty()) return failure(std::move(errors));
  out.sources.push_back("nccl-tests, " + std::filesystem::path(file).filename().string());
  return {};
}

}  // namespace stepcast
