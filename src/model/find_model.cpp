// SPDX-License-Identifier: Apache-2.0
#include "core/read_roots.h"
#include "model/import_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/carried_files.h"
#include "core/data_name.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "model/model.h"
#include "model/shipped_name.h"

namespace stepcast {

namespace fs = std::filesystem;

namespace {

// A checkpoint's folder stands for the config.json inside it.
fs::path config_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? path / "config.json" : path;
}

Result<Model> load_model(const fs::path& file, const std::string& assume_family) {
  auto document = JsonDocument::load(file.string());
  if (!document) return failure(document.error());
  Model model = read_model((*document)->root(), assume_family);
  if (!(*document)->ok()) return failure((*document)->errors());
  const JsonValue root = (*document)->root();
  if (!ObjectReader(root).has("name")) model.name = model_name_of_file(file.string());
  return model;
}

}  // namespace

std::string model_name_of_file(const std::string& file) {
  std::error_code ignored;
  // "./config.json" is in a folder too.
  const fs::path path = fs::absolute(file, ignored).lexically_normal();
  const fs::path folder = path.parent_path().filename();
  return path.filename() == "config.json" && !folder.empty() ? folder.string()
                                                             : path.stem().string();
}

Result<Model> find_model(const std::string& name_or_path, const std::string& folder,
                         const std::string& assume_family) {
  std::error_code ignored;
  if (!is_path(name_or_path)) {
    const fs::path shipped = fs::path(folder) / (name_or_path + ".json");
    if (is_data_file(shipped.string())) return load_model(shipped, assume_family);
  }
  if (may_name(name_or_path)) {
    const fs::path file = config_file(name_or_path);
    // A file that exists but cannot be read is refused by its reader, which knows why.
    const bool absent = fs::status(file, ignored).type() == fs::file_type::not_found;
    if (!absent) return load_model(file, assume_family);
  }
  if (const auto shipped = shipped_model_name(name_or_path, folder)) {
    auto model = load_model(fs::path(folder) / (*shipped + ".json"), assume_family);
    if (model) model->reading = fmt::format("{} is read as the shipped {}", name_or_path, *shipped);
    return model;
  }
  // The reader says that a file lies outside, whether it is there or not.
  if (is_path(name_or_path) && !may_name(name_or_path)) return load_model(name_or_path, "");
  return failure(no_model(name_or_path, folder));
}

Result<std::vector<ModelEntry>> list_models(const std::string& folder) {
  std::vector<ModelEntry> entries;
  Errors errors;
  const auto names = data_names(folder);
  if (!names) return failure(names.error());
  for (const std::string& name : *names) {
    auto document = JsonDocument::load((fs::path(folder) / (name + ".json")).string());
    if (!document) {
      append(errors, document.error());
      continue;
    }
    ObjectReader reader((*document)->root());
    ModelEntry entry;
    entry.name = name;
    entry.source = reader.required_text("source");
    entry.has_vision = reader.has("text_config");
    const Errors& found = (*document)->errors();
    errors.insert(errors.end(), found.begin(), found.end());
    entries.push_back(std::move(entry));
  }
  if (!errors.empty()) return failure(std::move(errors));
  return entries;
}

}  // namespace stepcast
