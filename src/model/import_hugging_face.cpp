// SPDX-License-Identifier: Apache-2.0
#include "model/import_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "model/hugging_face_config.h"
#include "model/import_native.h"

namespace stepcast {

namespace {

const Family* find_family(std::string_view model_type) {
  for (const auto group : {gpt_families(), llama_families(), moe_families()}) {
    for (const Family& family : group) {
      if (family.model_type == model_type) return &family;
    }
  }
  return nullptr;
}

std::string families_hint(const std::string& word) {
  const std::vector<std::string> names = supported_families();
  const std::string near = did_you_mean(word, names);
  return (near.empty() ? "" : near + " ") + "supported: " + one_of(names) +
         "; --assume FAMILY reads it as one of them";
}

// The family to read as; reports when there is none.
const Family* choose_family(ObjectReader& reader, const std::string& assume_family) {
  const auto model_type = reader.text("model_type");
  if (model_type) {
    if (const Family* family = find_family(*model_type)) return family;
  }
  if (!assume_family.empty()) {
    const Family* family = find_family(assume_family);
    if (family == nullptr) {
      reader.fail(
          "model_type", ErrorCode::kBadValue,
          fmt::format("cannot be read as '{}', which is no supported family", assume_family),
          families_hint(assume_family));
    }
    return family;
  }
  if (model_type) {
    reader.fail("model_type", ErrorCode::kNotSupported,
                fmt::format("'{}' is not a supported family", *model_type),
                families_hint(*model_type));
  }
  return nullptr;
}

std::string name_from(ObjectReader& reader, std::string_view model_type) {
  if (const auto name = reader.text("name")) return *name;
  if (const auto path = reader.text("_name_or_path")) {
    const std::string name = std::filesystem::path(*path).filename().string();
    if (!name.empty()) return name;
  }
  return std::string(model_type);
}

Model read_hugging_face_model(const JsonValue& value, const std::string& assume_family) {
  ObjectReader top(value);
  const Family* family = choose_family(top, assume_family);
  if (family == nullptr) return Model{};
  // Multi-modal configurations keep the language model apart; the vision tower is not modelled.
  const auto text_config = top.value("text_config");
  HuggingFaceConfig config(text_config.value_or(value));
  Model model = family->read(config);
  model.name = name_from(top, family->model_type);
  if (text_config && top.has("tie_word_embeddings")) {
    model.tied_embeddings = top.boolean("tie_word_embeddings").value_or(model.tied_embeddings);
  }
  complete_and_check(model, config.keys, config.reader(), config.reader());
  return model;
}

}  // namespace

std::vector<std::string> supported_families() {
  std::vector<std::string> names;
  for (const auto group : {gpt_families(), llama_families(), moe_families()}) {
    for (const Family& family : group) {
      if (!family.model_type.ends_with("_text")) names.emplace_back(family.model_type);
    }
  }
  return names;
}

Model read_model(const JsonValue& value, const std::string& assume_family) {
  if (!value.is_object()) {
    ObjectReader wrong(value);  // reports the wrong type
    return Model{};
  }
  ObjectReader reader(value);
  if (reader.has("layers")) return read_native_model(value);
  if (reader.has("model_type") || !assume_family.empty()) {
    return read_hugging_face_model(value, assume_family);
  }
  value.fail(ErrorCode::kMissingKey, "is neither form of a model",
             "the native form has `layers`, a Hugging Face config.json has `model_type`");
  return Model{};
}

}  // namespace stepcast
