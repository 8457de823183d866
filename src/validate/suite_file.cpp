// SPDX-License-Identifier: Apache-2.0
#include "validate/suite_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/json.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "core/write_rows.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "validate/documents.h"
#include "validate/recorded_run.h"

namespace stepcast {
namespace {

Errors errors_of_suite(const std::string& text, const std::string& file) {
  const auto document = JsonDocument::parse(text, file);
  if (!document) return document.error();
  const auto suite = read_suite(**document);
  return suite ? Errors{} : suite.error();
}

Json earlier_run(const Json& known, const DataFolders& folders) {
  Json out = {{"source", known["source"]}, {"measured", known["measured"]}};
  const auto document = JsonDocument::from(known["scenario"], "");
  if (const auto scenario = read_legal_scenario(*document, folders)) {
    out["work"] = json_of(work_of(*scenario));
  }
  return out;
}

// Whether a log is the one that made the case. A suite may tell less of it than is read today.
bool is_same_run(const Json& known, const Json& one) {
  const Json& measured = one["measured"];
  return known["source"] == one["source"] &&
         std::ranges::all_of(known["measured"].items(), [&](const auto& figure) {
           return measured.contains(figure.first) && measured[figure.first] == figure.second;
         });
}

// The texts of both, each once.
Json joined(const Json& known, const Json& more) {
  Json out = known;
  for (const Json& text : more) {
    if (std::ranges::find(out, text) == out.end()) out.push_back(text);
  }
  return out;
}

// A case's later runs keep its limits, labels and notes, what it assumes, and how its figures are
// stated, as people wrote them. Which memory a log tells is the log's to say.
void keep_what_people_wrote(const Json& known, Json& one) {
  for (const char* key : {"publisher", "tolerance", "most_step_time_s"}) {
    if (known.contains(key)) one[key] = known[key];
  }
  for (const char* key : {"tags", "assumed"}) {
    if (known.contains(key)) one[key] = joined(known[key], one.value(key, Json::array()));
  }
  const std::string notes = known.value("notes", std::string());
  if (!notes.empty() && !notes.starts_with(kNotesOfALog)) one["notes"] = notes;
  if (!known.contains("convention")) return;
  Json convention = Json::object();
  for (const auto& [key, value] : known["convention"].items()) {
    if (key != "memory") convention[key] = value;
  }
  const Json read = one.value("convention", Json::object());
  for (const auto& [key, value] : read.items()) convention[key] = value;
  if (!convention.empty()) one["convention"] = std::move(convention);
}

}  // namespace

Result<SuiteFile> SuiteFile::open(const std::string& file) {
  SuiteFile out;
  out.file_ = file;
  std::error_code none;
  if (std::filesystem::status(file, none).type() == std::filesystem::file_type::not_found) {
    const std::string name = std::filesystem::path(file).stem().string();
    out.suite_ = {{"stepcast_suite", 1}, {"name", name}, {"cases", Json::array()}};
    return out;
  }
  const auto text = read_text_file(file);
  if (!text) return failure(text.error());
  if (Errors errors = errors_of_suite(*text, file); !errors.empty()) return failure(errors);
  auto suite = parse_ordered_json(*text, file);
  if (!suite) return failure(suite.error());
  out.suite_ = std::move(*suite);
  return out;
}

void SuiteFile::add(Json one, const DataFolders& folders) {
  Json& cases = suite_["cases"];
  for (Json& known : cases) {
    if (known["id"] != one["id"]) continue;
    Json earlier = known.value("earlier", Json::array());
    if (!is_same_run(known, one)) earlier.push_back(earlier_run(known, folders));
    if (!earlier.empty()) one["earlier"] = std::move(earlier);
    keep_what_people_wrote(known, one);
    known = std::move(one);
    return;
  }
  cases.push_back(std::move(one));
}

Result<Written> SuiteFile::text() const {
  std::string out = "{";
  for (const auto& [key, value] : suite_.items()) {
    if (key != "cases") out += fmt::format("{}: {}, ", json_literal(key), json_text(value));
  }
  out += "\"cases\": [";
  const char* separator = "\n";
  for (const Json& one : suite_["cases"]) {
    out += separator + json_text(one);
    separator = ",\n";
  }
  out += "]}\n";
  if (Errors errors = errors_of_suite(out, file_); !errors.empty()) return failure(errors);
  return Written::escaped(std::move(out));
}

}  // namespace stepcast
