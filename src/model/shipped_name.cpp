// SPDX-License-Identifier: Apache-2.0
#include "model/shipped_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "core/data_name.h"
#include "core/json.h"

namespace stepcast {
namespace {

// Publishers add these to a name of the same shape: fine-tuned variants, the pre-trained one beside
// them, and weights converted to Hugging Face's format.
constexpr std::array<std::string_view, 6> kVariants = {"-instruct", "-base", "-chat",
                                                       "-hf",       "-it",   "-pt"};

// The name as publishers spell it, without its owner: "Llama-3.1-8B" of "meta-llama/Llama-3.1-8B".
std::string without_owner(const std::string& text) { return text.substr(text.rfind('/') + 1); }

std::string shape_name(std::string name) {
  std::ranges::transform(name, name.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  for (const std::string_view variant : kVariants) {
    if (name.size() > variant.size() && name.ends_with(variant)) {
      name.resize(name.size() - variant.size());
    }
  }
  return plain_name(name);
}

// "Llama-3.1-8B" of a source that begins "https://huggingface.co/meta-llama/Llama-3.1-8B: ...".
std::string repository_of(const std::string& file) {
  constexpr std::string_view kHub = "https://huggingface.co/";
  const auto document = JsonDocument::load(file);
  if (!document) return "";  // whoever reads it says why
  ObjectReader reader((*document)->root());
  const std::string source = reader.text("source").value_or("");
  if (!source.starts_with(kHub)) return "";
  return without_owner(source.substr(0, source.find_first_of(":,; ", kHub.size())));
}

// A repository has one owner. Anything else with a '/' is a path.
bool may_be_repository(const std::string& text) {
  return std::ranges::count(text, '/') <= 1 && !text.starts_with('/') && !text.starts_with('.') &&
         !text.starts_with('~') && !text.ends_with('/') && !text.ends_with(".json");
}

// Parts between dashes: all of `word`'s stand in `name`, as those of "llama-8b" in "llama-3-8b".
bool has_all_parts(const std::string& word, const std::string& name) {
  const auto parts_of = [](const std::string& text) {
    std::set<std::string> out;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('-', begin), text.size());
      out.insert(plain_name(std::string_view(text).substr(begin, end - begin)));
      begin = end + 1;
    }
    return out;
  };
  return std::ranges::includes(parts_of(name), parts_of(word));
}

// "llama" of "llama-3.1-8b", "gpt" of "gpt2-xl".
std::string family_of(const std::string& name) {
  const std::string plain = shape_name(name);
  std::size_t end = 0;
  while (end < plain.size() && plain[end] >= 'a' && plain[end] <= 'z') ++end;
  return plain.substr(0, end);
}

// Names that a suggestion may take: of the word's own family, or of one that its own is a misspelt
// name of. Another family's model is another model, however near its name.
std::vector<std::string> of_its_family(const std::string& word,
                                       const std::vector<std::string>& names) {
  const std::string family = family_of(word);
  std::vector<std::string> families;
  for (const std::string& name : names) families.push_back(family_of(name));
  const bool is_known = std::ranges::find(families, family) != families.end();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool fits = is_known ? families[i] == family
                               : !did_you_mean(family, {families[i]}).empty() && !family.empty() &&
                                     families[i].front() == family.front();
    if (fits) out.push_back(names[i]);
  }
  return out;
}

// Releases of the same shape that a shipped file names: "same_shape": ["Llama-3.3-70B"].
bool is_same_shape(const std::string& file, const std::string& wanted) {
  const auto document = JsonDocument::load(file);
  if (!document) return false;  // whoever reads it says why
  const SortedJson& model = (*document)->root().raw();
  const auto found = model.find("same_shape");
  if (found == model.end() || !found->is_array()) return false;
  return std::ranges::any_of(*found, [&](const SortedJson& name) {
    return name.is_string() && shape_name(name.get<std::string>()) == wanted;
  });
}

}  // namespace

std::optional<std::string> shipped_model_name(const std::string& text, const std::string& folder) {
  if (!may_be_repository(text)) return std::nullopt;
  const std::string wanted = shape_name(without_owner(text));
  if (wanted.empty()) return std::nullopt;
  const auto names = data_names(folder).value_or(std::vector<std::string>());
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (shape_name(name) == wanted) found.push_back(name);
  }
  if (found.empty()) {
    for (const std::string& name : names) {
      const std::string file = fmt::format("{}/{}.json", folder, name);
      if (shape_name(repository_of(file)) == wanted || is_same_shape(file, wanted)) {
        found.push_back(name);
      }
    }
  }
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

Error no_model(const std::string& text, const std::string& folder) {
  const auto names = data_names(folder).value_or(std::vector<std::string>());
  std::string word = without_owner(text);
  if (word.ends_with(".json")) word.resize(word.size() - 5);
  std::vector<std::string> fitting;
  std::ranges::copy_if(names, std::back_inserter(fitting),
                       [&](const std::string& name) { return has_all_parts(word, name); });
  const std::string hint = nearest_of(word, fitting, of_its_family(word, names));
  if (is_path(text)) {
    return {ErrorCode::kNotFound, fmt::format("there is no file '{}'", text), "", "model",
            hint.empty() ? "a config.json, its folder or a shipped name" : hint};
  }
  return {ErrorCode::kNotFound, fmt::format("no model is called '{}'", text), "", "model",
          hint.empty() ? "`stepcast show models` lists all; a path works too"
                       : hint + " `stepcast show models` lists all"};
}

}  // namespace stepcast
