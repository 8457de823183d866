// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/import_text.h"
#include "core/gathered_errors.h"
#include "core/text_file.h"

namespace stepcast {
namespace {

enum class Form { kTrace, kTables, kNcclTests, kCompressed, kUnknown };

Form form_of(const std::string& text) {
  if (text.starts_with("\x1f\x8b")) return Form::kCompressed;
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
    case Form::kCompressed:
      return failure({ErrorCode::kFormat, "is compressed", file, "", "unpack it first: gunzip"});
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
    const auto text = read_text_file(file, {.most_bytes = kMostTraceBytes});
    const auto read = text ? import_text(*text, file, cluster, out) : failure(text.error());
    if (!read) append(errors, read.error());
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

}  // namespace stepcast
