// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>

namespace stepcast {
namespace {

// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none
// (The Unicode Standard 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  const auto within = [&](std::size_t i, unsigned low, unsigned high) {
    if (i >= text.size()) return false;
    const auto byte = static_cast<unsigned char>(text[i]);
    return low <= byte && byte <= high;
  };
  const auto tail = [&](std::size_t i) { return within(i, 0x80, 0xBF); };
  if (within(0, 0x00, 0x7F)) return 1;
  if (within(0, 0xC2, 0xDF)) return tail(1) ? 2 : 0;
  if (within(0, 0xE0, 0xEF)) {
    const bool second = within(0, 0xE0, 0xE0)   ? within(1, 0xA0, 0xBF)  // else overlong
                        : within(0, 0xED, 0xED) ? within(1, 0x80, 0x9F)  // else a surrogate
                                                : tail(1);
    return second && tail(2) ? 3 : 0;
  }
  if (within(0, 0xF0, 0xF4)) {
    const bool second = within(0, 0xF0, 0xF0)   ? within(1, 0x90, 0xBF)  // else overlong
                        : within(0, 0xF4, 0xF4) ? within(1, 0x80, 0x8F)  // else above U+10FFFF
                                                : tail(1);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// A line of JSON in a fixed buffer. A text that does not fit is cut between characters.
class Line {
 public:
  Line(int rank, RankEvent event) {
    add(kRankReportWord);
    add(R"({"rank":)");
    add(rank);
    text("event", name_of(event));
  }

  void number(std::string_view key, std::int64_t value) {
    open(key);
    add(value);
  }

  void text(std::string_view key, std::string_view value) {
    open(key);
    add("\"");
    while (!value.empty() && size_ + kLongestCharacter < kTextEnd) {
      const std::size_t length = utf8_length(value);
      character(length == 0 ? "?" : value.substr(0, length));
      value.remove_prefix(std::max<std::size_t>(length, 1));
    }
    add("\"");
  }

  void write_to(int file) {
    add("}\n");
    ssize_t written = 0;
    do {
      written = ::write(file, buffer_.data(), size_);
    } while (written < 0 && errno == EINTR);
  }

 private:
  static constexpr std::size_t kLongestCharacter = 6;  // \u001f
  // Behind a text come at most its quote, two numbers with their keys, another key and "}\n".
  static constexpr std::size_t kTextEnd = PIPE_BUF - 128;

  void add(std::string_view text) {
    const std::size_t length = std::min(text.size(), buffer_.size() - size_);
    std::copy_n(text.begin(), length, buffer_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += length;
  }

  void add(std::int64_t value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }

  void open(std::string_view key) {
    add(",\"");
    add(key);
    add("\":");
  }

  void character(std::string_view bytes) {
    const auto first = static_cast<unsigned char>(bytes.front());
    if (first == '"' || first == '\\') {
      add("\\");
      add(bytes);
    } else if (first < 0x20) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      add("\\u00");
      add(kDigits.substr(first / 16, 1));
      add(kDigits.substr(first % 16, 1));
    } else {
      add(bytes);
    }
  }

  std::array<char, PIPE_BUF> buffer_;
  std::size_t size_ = 0;
};

std::int64_t now() {
  using std::chrono::duration_cast;
  return duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

const char* name_of(RankEvent event) {
  switch (event) {
    case RankEvent::kStarted:
      return "started";
    case RankEvent::kProgress:
      return "progress";
    case RankEvent::kHeartbeat:
      return "heartbeat";
    case RankEvent::kWarning:
      return "warning";
    case RankEvent::kFailed:
      return "failed";
    case RankEvent::kFinished:
      return "finished";
  }
  return "";
}

const char* name_of(RankFailure failure) {
  switch (failure) {
    case RankFailure::kOutOfMemory:
      return "out_of_memory";
    case RankFailure::kNumerics:
      return "numerics";
    case RankFailure::kCommunication:
      return "communication";
    case RankFailure::kInput:
      return "input";
    case RankFailure::kMachine:
      return "machine";
    case RankFailure::kInternal:
      return "internal";
  }
  return "";
}

bool RankReporter::quiet() noexcept {
  const std::int64_t time = now();
  std::int64_t last = last_.load(std::memory_order_relaxed);
  if (time - last < kQuietNanoseconds) return true;
  return !last_.compare_exchange_strong(last, time, std::memory_order_relaxed);
}

void RankReporter::started() noexcept { Line(rank_, RankEvent::kStarted).write_to(file_); }

void RankReporter::progress(std::string_view phase, std::int64_t done, std::int64_t total,
                            std::string_view text) noexcept {
  // The first and the last report of a phase are always written.
  if (done != 0 && done != total && quiet()) return;
  Line line(rank_, RankEvent::kProgress);
  line.text("phase", phase.substr(0, 200));
  line.number("done", done);
  line.number("total", total);
  line.text("text", text);
  line.write_to(file_);
}

void RankReporter::heartbeat() noexcept {
  if (!quiet()) Line(rank_, RankEvent::kHeartbeat).write_to(file_);
}

void RankReporter::warning(std::string_view text) noexcept {
  Line line(rank_, RankEvent::kWarning);
  line.text("text", text);
  line.write_to(file_);
}

void RankReporter::failed(RankFailure failure, std::string_view message) noexcept {
  Line line(rank_, RankEvent::kFailed);
  line.text("kind", name_of(failure));
  line.text("message", message);
  line.write_to(file_);
}

void RankReporter::finished() noexcept { Line(rank_, RankEvent::kFinished).write_to(file_); }

}  // namespace stepcast
