// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/diagnosis_numbers.h"
#include "report/number_text.h"
#include "report/replay_report.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr double kLeastShare = 1e-4;  // of the whole time, below which a part is not shown
constexpr std::size_t kRankRows = 12, kMessageRows = 15, kPathRows = 10;

std::vector<std::string> rank_cells(const RankTimes& times, Seconds whole) {
  const auto part = [&](Seconds time) {
    if (time / whole < kLeastShare) return std::string("-");
    return fmt::format("{} ({})", time_text(time), percent_text(time / whole));
  };
  return {time_text(times.end), part(times.compute), part(times.communication),
          part(times.host),     part(times.waiting), part(times.idle)};
}

// Ranks whose rows look alike share one, in the order of the first of each.
struct AlikeRanks {
  std::vector<RankId> ranks;
  std::vector<std::string> cells;
};

std::vector<AlikeRanks> alike_ranks(const GraphReplay& replay) {
  std::vector<AlikeRanks> out;
  for (std::size_t r = 0; r < replay.ranks.size(); ++r) {
    std::vector<std::string> cells = rank_cells(replay.ranks[r], replay.time);
    const auto known = std::ranges::find(out, cells, &AlikeRanks::cells);
    if (known != out.end()) {
      known->ranks.emplace_back(r);
    } else if (out.size() <= kRankRows) {
      out.push_back({{RankId(r)}, std::move(cells)});
    } else {
      out.back().ranks.emplace_back(r);  // of those that are not shown one by one
    }
  }
  return out;
}

TextTable rank_table(const GraphReplay& replay) {
  TextTable table({{"ranks", Align::kLeft},
                   {"end"},
                   {"compute"},
                   {"exposed communication"},
                   {"host"},
                   {"waits for ranks"},
                   {"idle"}});
  const auto rows = alike_ranks(replay);
  for (std::size_t i = 0; i < std::min(rows.size(), kRankRows); ++i) {
    std::vector<std::string> cells{ranks_text(rows[i].ranks)};
    cells.insert(cells.end(), rows[i].cells.begin(), rows[i].cells.end());
    table.add_row(std::move(cells));
  }
  return table;
}

TextTable message_table(const GraphReplay& replay) {
  TextTable table(
      {{"what", Align::kLeft}, {"ranks"}, {"bytes"}, {"calls"}, {"time"}, {"alone"}, {"busbw"}});
  for (std::size_t i = 0; i < std::min(replay.messages.size(), kMessageRows); ++i) {
    const MessageRow& row = replay.messages[i];
    table.add_row({row.what, fmt::format("{}", row.ranks), message_bytes_text(row.bytes),
                   count_text(static_cast<double>(row.calls)), time_text(row.time),
                   time_text(row.alone), message_rate_text(row.bus_bytes_per_s)});
  }
  return table;
}

TextTable path_table(const GraphReplay& replay) {
  TextTable table({{"what", Align::kLeft}, {"nodes"}, {"time"}, {"share"}});
  for (std::size_t i = 0; i < std::min(replay.critical_path.size(), kPathRows); ++i) {
    const GraphPathStep& step = replay.critical_path[i];
    table.add_row({step.what, fmt::format("{}", step.nodes), time_text(step.time),
                   percent_text(step.time / replay.time)});
  }
  return table;
}

Written left_out(std::size_t shown, std::size_t all, const char* what, Form form) {
  if (all <= shown) return {};
  return line(fmt::format("{} more {} stand in --format json", all - shown, what), form);
}

std::string source_words(TimeSource source, const char* file, const char* model) {
  return source == TimeSource::kFile ? file : model;
}

}  // namespace

Written replay_text(const ReplayReport& report, Form form) {
  const GraphReplay& replay = report.replay;
  Written out =
      title(fmt::format("{}: {}, {} nodes, {}", report.source,
                        counted_text(static_cast<std::int64_t>(replay.ranks.size()), "rank"),
                        count_text(static_cast<double>(report.graph.nodes())), report.graph.format),
            form);
  out += line(fmt::format("over {} of {}: {}", counted_text(report.places, "GPU"), report.network,
                          time_text(replay.time)),
              form);
  out += paragraph_end(form);
  out +=
      line(fmt::format("{}; {}",
                       source_words(report.rules.compute, "computing lasts as the file states",
                                    "computing lasts as the data sheet allows"),
                       source_words(report.rules.communication, "communication as the file states",
                                    "communication as the network allows")),
           form);
  out += heading("Where each rank's time goes", form) + shown(rank_table(replay), form);
  if (alike_ranks(replay).size() > kRankRows) {
    out += line("the other ranks stand in --format json and csv", form);
  }
  if (!replay.messages.empty()) {
    out += heading("Communication, the mean of all calls", form);
    out += shown(message_table(replay), form);
    out += left_out(kMessageRows, replay.messages.size(), "sizes", form);
  }
  if (!replay.critical_path.empty()) {
    out += heading("Critical path", form) + shown(path_table(replay), form);
    out += left_out(kPathRows, replay.critical_path.size(), "names", form);
  }
  return out;
}

Written replay_csv(const ReplayReport& report) {
  TextTable table({{"rank"},
                   {"end_s"},
                   {"compute_s"},
                   {"communication_s"},
                   {"host_s"},
                   {"waiting_s"},
                   {"idle_s"}});
  for (std::size_t r = 0; r < report.replay.ranks.size(); ++r) {
    const RankTimes& one = report.replay.ranks[r];
    table.add_row({fmt::format("{}", r), exact_text(one.end.value()),
                   exact_text(one.compute.value()), exact_text(one.communication.value()),
                   exact_text(one.host.value()), exact_text(one.waiting.value()),
                   exact_text(one.idle.value())});
  }
  return table.csv();
}

}  // namespace stepcast
