// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/import_text.h"
#include "core/gathered_errors.h"
#include "core/limits.h"
#include "core/text_file.h"
#include "traces/gunzip.h"

namespace stepcast {
namespace {

enum class Form { kTrace, kTables, kNcclTests, kUnknown };

Form form_of(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return Form::kUnknown;
  if (text[first] == '{' || text[first] == '[') {
    // Chrome's format also allows the bare list of events.
    const bool events = text.find("\"traceEvents\"") != std::string::npos ||
                        (text[first] == '[' && text.find("\"ph\"") != std::string::npos);
    return events ? Form::kTrace : Form::kTables;
  }
  const bool table =
      text.find("algbw") != std::string::npos || text.find("# nThread") != std::string::npos;
  return table ? Form::kNcclTests : Form::kUnknown;
}

// The text of a file that may be packed.
Result<std::string> read_unpacked(const std::string& file) {
  auto text = read_text_file(file, {.most_bytes = kMostTraceBytes, .may_be_packed = true});
  if (!text || !text->starts_with(kGzipMark)) return text;
  std::string out;
  bool is_too_large = false;
  Gunzip unpacking([&](std::string_view piece) {
    out += piece;
    is_too_large = static_cast<std::int64_t>(out.size()) > kMostTraceBytes;
    return !is_too_large;
  });
  unpacking.feed(*text);
  const std::string wrong = is_too_large ? "unpacks to more than 4 GiB" : unpacking.wrong();
  if (wrong.empty()) return out;
  return failure({ErrorCode::kSyntax, wrong, file, "", "the whole file, as it was written"});
}

}  // namespace

Result<void> import_text(const std::string& text, const std::string& file,
                         const ClusterSpec& cluster, Imported& out) {
  switch (form_of(text)) {
    case Form::kTrace:
      return import_trace(text, file, cluster, out);
    case Form::kTables:
      return import_tables(text, file, cluster, out);
    case Form::kNcclTests:
      return import_nccl_tests(text, file, cluster, out);
    case Form::kUnknown:
      break;
  }
  return failure({ErrorCode::kFormat, "is nothing that can be imported", file, "",
                  "accepted: the text that nccl-tests print, PyTorch traces, tables in JSON"});
}

Result<Imported> import_files(const std::vector<std::string>& files, const ClusterSpec& cluster) {
  Imported out;
  Errors errors;
  for (const std::string& file : files) {
    const auto text = read_unpacked(file);
    const auto read = text ? import_text(*text, file, cluster, out) : failure(text.error());
    if (!read) append(errors, read.error());
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
