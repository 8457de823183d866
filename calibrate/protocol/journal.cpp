// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/protocol/journal_text.h"
#include "core/assert.h"
#include "core/atomic_file.h"
#include "core/failed_write.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

const char* const kStartAgain = "measure there, or remove the file to start again on this machine";

// Each line ends with the CRC-32 of what stands before it: `...,"crc32":"0123abcd"}`.
constexpr std::string_view kChecksumKey = R"(,"crc32":")";
constexpr std::size_t kDigits = 8;
constexpr std::size_t kTail = kChecksumKey.size() + kDigits + 2;  // with `"}`

std::string checksum_of(std::string_view text) {
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  return fmt::format("{:08x}", crc.checksum());
}

std::string line_of(const Json& object) {
  std::string out = json_text(object);
  out.pop_back();  // the object goes on
  return fmt::format("{}{}{}\"}}\n", out, kChecksumKey, checksum_of(out));
}

// The object before the checksum was added to it; nothing when the two do not belong together.
std::optional<std::string> checked(const std::string& line) {
  if (line.size() <= kTail) return std::nullopt;
  const std::string body = line.substr(0, line.size() - kTail);
  const std::string tail = fmt::format("{}{}\"}}", kChecksumKey, checksum_of(body));
  if (line.substr(body.size()) != tail) return std::nullopt;
  return body + "}";
}

// Lines without their ends; what follows the last end is cut off.
std::vector<std::string> whole_lines(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return out;
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// A run that ended while it made the file leaves the beginning of a header.
bool is_torn_header(const std::string& text) {
  const std::string start = fmt::format("{{\"{}\":", JournalHeader::kMark);
  const std::size_t both = std::min(text.size(), start.size());
  return text.find('\n') == std::string::npos && text.compare(0, both, start, 0, both) == 0;
}

Result<void> check_machine(const std::string& file, const Json& written, const Json& here) {
  Json all = here;
  all.update(written);
  for (const auto& [key, unused] : all.items()) {
    const Json there = written.value(key, Json());
    const Json ours = here.value(key, Json());
    if (there == ours) continue;
    return failure({ErrorCode::kIllegal,
                    fmt::format("the points are of another machine: {} there, {} here",
                                json_text(there), json_text(ours)),
                    file, "machine." + key, kStartAgain});
  }
  return {};
}

// A line whose checksum is right, as the struct that declares its keys. `hint` is the way out of
// every error in it.
template <class Line>
Result<Line> read_line(const std::string& body, const std::string& name, const std::string& hint) {
  auto document = JsonDocument::parse(body, name);
  if (!document) return failure(document.error());
  auto out = read_object<Line>((*document)->root());
  if ((*document)->ok()) return out;
  Errors errors = (*document)->errors();
  for (Error& error : errors) error.hint += (error.hint.empty() ? "" : "; ") + hint;
  return failure(std::move(errors));
}

// Whatever has no format of a journal may be a file of another program: it is told so, and not that
// its checksum is missing.
Result<void> check_kind(const std::string& file, const std::string& line) {
  const auto parsed = parse_ordered_json(line, file);
  const char* mark = JournalHeader::kMark;
  if (!parsed || !parsed->is_object() || !parsed->contains(mark)) {
    return failure(
        {ErrorCode::kFormat, "is not a journal of measurements", file, mark, "name another file"});
  }
  const Json& format = (*parsed)[mark];
  if (format == JournalHeader::kFormat) return {};
  return failure({ErrorCode::kFormat, fmt::format("format {} is not supported", json_text(format)),
                  file, mark,
                  fmt::format("this version reads format {}: remove the file to start again",
                              JournalHeader::kFormat)});
}

Result<JournalHeader> read_header(const std::string& file, const std::string& line) {
  if (const auto kind = check_kind(file, line); !kind) return failure(kind.error());
  const auto body = checked(line);
  if (!body) {
    return failure({ErrorCode::kFormat, "line 1 was changed or damaged: its checksum is another",
                    file, "crc32", "remove the file to start again"});
  }
  auto out = read_line<JournalHeader>(*body, file, kStartAgain);
  if (out) out->machine = Json::parse(*body)["machine"];  // keeps the order of its keys
  return out;
}

Result<JournalPoint> read_point(const std::string& file, std::size_t number,
                                const std::string& line) {
  const std::string hint = fmt::format("remove line {} to measure its point again", number);
  const auto body = checked(line);
  if (!body) {
    return failure({ErrorCode::kFormat,
                    fmt::format("line {} was changed or damaged: its checksum is another", number),
                    file, "crc32", hint});
  }
  auto out = read_line<JournalPoint>(*body, fmt::format("{}, line {}", file, number), hint);
  if (out) out->extra = Json::parse(*body)["extra"];  // keeps the order of its keys
  return out;
}

tl::unexpected<Errors> io_failure(const std::string& file, const char* what, int reason,
                                  std::string hint) {
  return failure({ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(reason)), file, "",
                  std::move(hint)});
}

}  // namespace

void JournalHeader::check(const JsonValue& value) const {
  if (!machine.is_object()) {
    ObjectReader(value).fail("machine", ErrorCode::kBadValue,
                             "does not say which machine its points are of");
  }
}

Journal::Journal(Journal&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      size_bytes_(other.size_bytes_),
      points_(std::move(other.points_)) {}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);  // gives the lock back
}

Result<Journal> Journal::open(const std::string& file, const Json& machine) {
  STEPCAST_ASSERT(machine.is_object(), "facts of a machine by name");
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return io_failure(file, "cannot be opened", errno,
                      hint_of_failed_write(errno, "name a file that you may write to"));
  }
  Journal out(file, descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return failure({ErrorCode::kIllegal, "another run is writing it", file, "",
                    "wait for that run, or name another file"});
  }
  std::string text;
  if (!is_special_file(file)) {
    auto all = read_open_file(descriptor, file);
    if (!all) return failure(all.error());
    text = std::move(*all);
  }
  if (auto read = out.read(text, machine); !read) return failure(read.error());
  return out;
}

// All of a journal; every bad line is an error.
Result<JournalText> read_journal(const std::string& text, const std::string& file) {
  JournalText out;
  if (is_torn_header(text)) return out;  // an empty file, too
  std::vector<std::string> lines = whole_lines(text);
  auto header = read_header(file, lines.empty() ? text : lines.front());
  if (!header) return failure(header.error());
  out.header = std::move(*header);
  // Blocks of a torn line that never reached the disk read as zeros.
  if (lines.size() > 1 && lines.back().find('\0') != std::string::npos) lines.pop_back();
  Errors errors;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out.whole_bytes += static_cast<std::int64_t>(lines[i].size()) + 1;
    if (i == 0) continue;
    if (auto point = read_point(file, i + 1, lines[i])) {
      out.points[point->key] = std::move(*point);
    } else {
      append(errors, point.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Result<void> Journal::read(const std::string& text, const Json& machine) {
  auto known = read_journal(text, name_);
  if (!known) return failure(known.error());
  if (known->whole_bytes == 0) {
    if (!text.empty() && ::ftruncate(file_, 0) != 0) {
      return io_failure(name_, "cannot be shortened", errno, "remove the file");
    }
    JournalHeader header;
    header.machine = machine;
    return write_line(line_of(json_of(header)));
  }
  const auto same = check_machine(name_, known->header.machine, machine);
  if (!same) return same;
  size_bytes_ = known->whole_bytes;
  points_ = std::move(known->points);
  if (size_bytes_ < static_cast<std::int64_t>(text.size()) &&
      ::ftruncate(file_, size_bytes_) != 0) {
    return io_failure(name_, "cannot be shortened", errno, "remove its last line");
  }
  return {};
}

Errors Journal::check(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  const auto text = read_text_file(file);
  if (!text) return text.error();
  const auto read = read_journal(*text, file);
  return read ? Errors{} : read.error();
}

const JournalPoint* Journal::find(const std::string& key) const {
  const auto found = points_.find(key);
  return found == points_.end() ? nullptr : &found->second;
}

Result<void> Journal::append(const JournalPoint& point) {
  auto written = write_line(line_of(json_of(point)));
  if (written) points_[point.key] = point;
  return written;
}

Result<void> Journal::write_line(const std::string& line) {
  if (write_all(file_, line) && ::fdatasync(file_) == 0) {
    size_bytes_ += static_cast<std::int64_t>(line.size());
    return {};
  }
  const int reason = errno;
  // Half a line would spoil the next one. Where this fails too, the next run drops it.
  [[maybe_unused]] const int shortened = ::ftruncate(file_, size_bytes_);
  return io_failure(
      name_, "cannot be written", reason,
      fmt::format("make room and run again: its {} finished points are kept", points_.size()));
}

Rows JournalPoint::fields() {
  using F = JournalPoint;
  static constexpr Row all[] = {row<&F::key>("key").required(),
                                row<&F::measurement>("measurement").required(),
                                row<&F::extra>("extra").required()};
  return rows_of<F>(all);
}

Rows JournalHeader::fields() {
  using F = JournalHeader;
  static constexpr Row all[] = {row<&F::format>(kMark).required().within(kFormat, kFormat),
                                row<&F::machine>("machine").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
