// SPDX-License-Identifier: Apache-2.0
#include "model/import_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

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

std::string families_hint() {
  return "supported: " + one_of(supported_families()) + "; --assume FAMILY reads it as one of them";
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
          families_hint());
    }
    return family;
  }
  if (model_type) {
    reader.fail("model_type", ErrorCode::kNotSupported,
                fmt::format("'{}' is not a supported family", *model_type), families_hint());
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

// Keys of every configuration, and of tokenizers and training, that cost nothing.
constexpr std::string_view kOfEveryModel[] = {"_attn_implementation",
                                              "_name_or_path",
                                              "architectures",
                                              "attention_dropout",
                                              "auto_map",
                                              "bos_token_id",
                                              "dtype",
                                              "embd_pdrop",
                                              "eos_token_id",
                                              "hidden_dropout",
                                              "initializer_range",
                                              "max_length",
                                              "model_type",
                                              "name",
                                              "output_attentions",
                                              "output_hidden_states",
                                              "output_router_logits",
                                              "pad_token_id",
                                              "pretraining_tp",
                                              "quantization_config",
                                              "published_parameters",
                                              "resid_pdrop",
                                              "return_dict",
                                              "router_aux_loss_coef",
                                              "same_shape",
                                              "source",
                                              "tie_word_embeddings",
                                              "torch_dtype",
                                              "transformers_version",
                                              "unk_token_id",
                                              "use_cache"};

// Activations of gated MLPs, which cost alike.
constexpr std::string_view kGated[] = {"silu", "swish", "gelu", "gelu_new", "gelu_pytorch_tanh"};

// A value that is off or empty, or a key of every model, tells nothing of this one.
bool says_nothing(const std::string& key, const SortedJson& value) {
  if (value.is_null() || value == false || value == 0) return true;
  if (value.is_structured() && value.empty()) return true;
  if (key == "layer_types" && value.is_array()) {
    return std::ranges::all_of(value,
                               [](const SortedJson& one) { return one == "full_attention"; });
  }
  if (key == "hidden_act" || key == "hidden_activation") {
    return value.is_string() &&
           std::ranges::find(kGated, value.get<std::string>()) != std::end(kGated);
  }
  return std::ranges::find(kOfEveryModel, key) != std::end(kOfEveryModel);
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

std::vector<std::string> keys_beyond(const JsonValue& config, const std::string& family) {
  ObjectReader top(config);
  const auto text_config = top.value("text_config");
  HuggingFaceConfig read(text_config.value_or(config));
  find_family(family)->read(read);
  std::vector<std::string> out;
  const SortedJson& object = read.reader().self().raw();
  for (const std::string& key : read.reader().not_asked()) {
    if (!says_nothing(key, object.at(key))) out.push_back(key);
  }
  return out;
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
