// SPDX-License-Identifier: Apache-2.0
// PyTorch's pipeline schedule CSV (torch/distributed/pipelining/schedules.py): one row per rank,
// one cell per pass in order: model chunk, letter, micro-batch. F forward, B whole backward, I
// gradient of the input, W of the weights.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "core/limits.h"
#include "core/text/characters.h"
#include "schedule/order_check.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

constexpr std::string_view kLetters = "FBIW";  // in the order of Pass

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The text up to the separator, which is consumed with it.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return head;
}

struct Cell {
  std::int32_t chunk = 0;  // in model order
  Pass pass = Pass::kForward;
  std::int32_t micro_batch = 0;
};

std::optional<Cell> parse_cell(std::string_view text) {
  Cell cell;
  const char* end = text.data() + text.size();
  const auto chunk = std::from_chars(text.data(), end, cell.chunk);
  if (chunk.ec != std::errc() || chunk.ptr == end) return std::nullopt;
  const auto letter = kLetters.find(*chunk.ptr);
  if (letter == std::string_view::npos) return std::nullopt;
  cell.pass = static_cast<Pass>(letter);
  const auto micro_batch = std::from_chars(chunk.ptr + 1, end, cell.micro_batch);
  if (micro_batch.ec != std::errc() || micro_batch.ptr != end) return std::nullopt;
  return cell;
}

class Reader {
 public:
  Reader(const Pipeline& pipeline, const std::string& file) : pipeline_(pipeline), file_(file) {}

  void read_row(std::string_view row) {
    StageOrder order;
    for (std::int64_t column = 1; !row.empty(); ++column) {
      const std::string_view text = trimmed(take(row, ','));
      if (!text.empty()) read_cell(text, column, order);
    }
    orders_.push_back(std::move(order));
  }

  Result<std::vector<StageOrder>> finish() {
    const auto rows = static_cast<std::int64_t>(orders_.size());
    if (rows != pipeline_.stages) {
      errors_.push_back({ErrorCode::kIllegal,
                         fmt::format("{} rows for pp = {}", rows, pipeline_.stages), file_, "",
                         "one row per stage"});
    }
    if (errors_.empty()) errors_ = check_orders(orders_, pipeline_, file_);
    if (!errors_.empty()) return failure(std::move(errors_));
    return std::move(orders_);
  }

 private:
  void read_cell(std::string_view text, std::int64_t column, StageOrder& order) {
    const auto stage = static_cast<std::int64_t>(orders_.size());
    const auto fail = [&](ErrorCode code, std::string message, std::string hint) {
      errors_.push_back({code, std::move(message), file_,
                         fmt::format("row {}, column {}", stage + 1, column), std::move(hint)});
    };
    const auto cell = parse_cell(text);
    if (!cell) {
      // Another kind of file may be one cell of many megabytes.
      return fail(ErrorCode::kSyntax,
                  fmt::format("'{}' is not a pass", shortened(text, kLongestQuote)),
                  "chunk, F, B, I or W, micro-batch, as in 0F3");
    }
    if (cell->micro_batch < 0 || cell->micro_batch >= pipeline_.micro_batches) {
      return fail(ErrorCode::kIllegal, fmt::format("micro-batch {}", cell->micro_batch),
                  fmt::format("0 to {}", pipeline_.micro_batches - 1));
    }
    const std::int64_t chunks = pipeline_.all_chunks();
    if (cell->chunk < 0 || cell->chunk >= chunks) {
      return fail(ErrorCode::kIllegal, fmt::format("model chunk {}", cell->chunk),
                  fmt::format("0 to {}", chunks - 1));
    }
    const std::int64_t on = stage_of_chunk(pipeline_, cell->chunk, cell->micro_batch);
    if (on != stage) {
      return fail(ErrorCode::kIllegal,
                  fmt::format("model chunk {} is not on this row's stage", cell->chunk),
                  fmt::format("it is on row {}", on + 1));
    }
    order.push_back({cell->pass, cell->micro_batch,
                     static_cast<std::int32_t>(local_chunk_of(pipeline_, cell->chunk))});
  }

  const Pipeline& pipeline_;
  const std::string& file_;
  std::vector<StageOrder> orders_;
  Errors errors_;
};

}  // namespace

std::string cell_text(const Pipeline& pipeline, std::int64_t stage, const Slot& slot) {
  return fmt::format("{}{}{}", chunk_of(pipeline, stage, slot.chunk),
                     kLetters[static_cast<std::size_t>(slot.pass)], slot.micro_batch);
}

std::string to_csv(const Pipeline& pipeline, const std::vector<StageOrder>& orders) {
  std::string text;
  for (std::size_t stage = 0; stage < orders.size(); ++stage) {
    const char* separator = "";
    for (const Slot& slot : orders[stage]) {
      text += separator + cell_text(pipeline, static_cast<std::int64_t>(stage), slot);
      separator = ",";
    }
    text += '\n';
  }
  return text;
}

CsvForm form_of_csv(std::string_view text) {
  CsvForm out;
  std::vector<std::string_view> rows;
  while (!text.empty()) {
    const std::string_view row = trimmed(take(text, '\n'));
    if (!row.empty()) rows.push_back(row);
  }
  if (rows.size() < 2) return out;
  const auto stages = static_cast<std::int32_t>(rows.size());
  bool has_first = false, has_folded = false, has_mirrored = false;
  for (std::string_view row = rows.front(); !row.empty();) {
    const std::string_view text_of_cell = trimmed(take(row, ','));
    if (text_of_cell.empty()) continue;
    const auto cell = parse_cell(text_of_cell);
    if (!cell) break;  // from_csv() tells what is wrong
    has_first = has_first || cell->chunk == 0;
    has_folded = has_folded || cell->chunk == 2 * stages - 1;
    has_mirrored = has_mirrored || cell->chunk == stages - 1;
  }
  if (has_first && has_folded) out.placement = Placement::kFolded;
  if (has_first && has_mirrored) out.placement = Placement::kMirrored;
  for (const std::string_view row : rows) {
    if (row.find(kLetters[static_cast<std::size_t>(Pass::kWeightGradient)]) != row.npos) {
      out.splits_backward = true;
    }
  }
  return out;
}

Result<std::vector<StageOrder>> from_csv(const std::string& text, const Pipeline& pipeline,
                                         const std::string& file) {
  Reader reader(pipeline, file);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view row = trimmed(take(rest, '\n'));
    if (!row.empty()) reader.read_row(row);
  }
  return reader.finish();
}

}  // namespace stepcast
