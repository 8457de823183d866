// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/json_tree.h"
#include "core/limits.h"
#include "core/text_file.h"
#include "traces/event_scanner.h"
#include "traces/gunzip.h"
#include "traces/profiler_trace.h"
#include "traces/trace_builder.h"

namespace stepcast {
namespace {

class Reading {
 public:
  explicit Reading(const std::string& file)
      : file_(file),
        builder_(file),
        scanner_(file, [this](const RawEvent& event) { return builder_.take(event); }) {}

  bool take(std::string_view piece) {
    if (!has_begun_ && piece.starts_with(kGzipMark)) {
      packed_.emplace([this](std::string_view text) { return take_text(text); });
    }
    has_begun_ = true;
    return packed_ ? packed_->feed(piece) : take_text(piece);
  }

  Result<Trace> finish() {
    if (is_too_large_) {
      return failure({ErrorCode::kBadValue, "unpacks to more than 4 GiB", file_, "",
                      "a trace of fewer steps"});
    }
    const std::string wrong = packed_ && !is_refused_ ? packed_->wrong() : "";
    if (!wrong.empty()) {
      return failure({ErrorCode::kSyntax, wrong, file_, "", "the whole file: copy it anew"});
    }
    const auto head = scanner_.finish();
    if (!head) return failure(head.error());
    return builder_.finish(*head);
  }

 private:
  bool take_text(std::string_view text) {
    bytes_ += static_cast<std::int64_t>(text.size());
    is_too_large_ = bytes_ > kMostTraceBytes;
    is_refused_ = is_too_large_ || !scanner_.feed(text);
    return !is_refused_;
  }

  const std::string& file_;
  TraceBuilder builder_;
  EventScanner scanner_;
  std::optional<Gunzip> packed_;
  std::int64_t bytes_ = 0;
  bool has_begun_ = false, is_too_large_ = false, is_refused_ = false;
};

}  // namespace

Result<Trace> read_trace(const std::string& file) {
  Reading reading(file);
  const auto read = read_pieces(file, {.most_bytes = kMostTraceBytes},
                                [&](std::string_view piece) { return reading.take(piece); });
  if (!read) return failure(read.error());
  return reading.finish();
}

Result<Trace> trace_of(std::string_view text, const std::string& file) {
  Reading reading(file);
  reading.take(text);
  return reading.finish();
}

}  // namespace stepcast
