// SPDX-License-Identifier: Apache-2.0
#include "layout/training_values.h"

#include "core/json_tree.h"
#include "layout/choices.h"
#include "layout/key_types.h"

namespace stepcast {
namespace {

constexpr std::int32_t kFirstYear = 2017;  // of the transformer
constexpr std::int32_t kLastYear = 2099;

// The month that `text` names; the newest where it names none.
Release release_of(std::string_view text) {
  const auto digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  constexpr std::string_view kForm = "YYYY-MM";
  if (text.size() != kForm.size() || text[4] != '-') return {};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 4 && !digit(text[i])) return {};
  }
  const auto number = [&](std::size_t begin, std::size_t end) {
    std::int32_t out = 0;
    for (std::size_t i = begin; i < end; ++i) out = 10 * out + (text[i] - '0');
    return out;
  };
  const std::int32_t year = number(0, 4), month = number(5, 7);
  const bool real = year >= kFirstYear && year <= kLastYear && month >= 1 && month <= 12;
  return real ? Release::of(year, month) : Release{};
}

std::string accepted_release() {
  return fmt::format("a month as 2024-07, {} to {}", kFirstYear, kLastYear);
}

bool read_release(ObjectReader& object, const char* key, Settings& out) {
  const auto text = object.text(key);
  if (!text) return false;
  const Release release = release_of(*text);
  if (release.newest()) {
    object.fail(key, ErrorCode::kBadValue, fmt::format("'{}' is not a month", *text),
                accepted_release());
    return false;
  }
  out.training.release = release;
  return true;
}

void write_release(const Settings& settings, SortedJson& out) {
  out = to_string(settings.training.release);
}

// `true` and `false` are the first two of the names, words are the others.
constexpr std::size_t kTruths = 2;

std::vector<std::string> graph_words() {
  const std::vector<std::string> names = cuda_graph_names();
  return {names.begin() + kTruths, names.end()};
}

bool read_cuda_graphs(ObjectReader& object, const char* key, Settings& out) {
  const auto value = object.value(key);
  if (!value) return false;
  CudaGraphs& graphs = out.training.cuda_graphs;
  if (value->is_text()) {
    const auto word = object.choice(key, graph_words());
    if (word) graphs = static_cast<CudaGraphs>(*word + kTruths);
    return word.has_value();
  }
  const auto truth = object.boolean(key);
  if (truth) graphs = *truth ? CudaGraphs::kOn : CudaGraphs::kOff;
  return truth.has_value();
}

void write_cuda_graphs(const Settings& settings, SortedJson& out) {
  const CudaGraphs graphs = settings.training.cuda_graphs;
  if (static_cast<std::size_t>(graphs) < kTruths) {
    out = graphs == CudaGraphs::kOn;
  } else {
    out = name_of(graphs);
  }
}

std::string accepted_targets() { return "some of " + one_of(adapter_target_names()); }

bool read_lora_targets(ObjectReader& object, const char* key, Settings& out) {
  const auto list = object.value(key);
  if (!list) return false;
  const std::vector<std::string> known = adapter_target_names();
  auto targets =
      read_names<AdapterTarget>(*list, known, [](const JsonValue& item, const std::string& name) {
        item.fail(ErrorCode::kBadValue, fmt::format("'{}' has no adapters", name),
                  accepted_targets());
      });
  if (list->is_array() && targets.empty()) {
    list->fail(ErrorCode::kBadValue, "no product has adapters", accepted_targets());
  }
  if (targets.size() < known.size()) out.training.lora_targets.named = std::move(targets);
  return true;
}

void write_lora_targets(const Settings& settings, SortedJson& out) {
  const std::vector<AdapterTarget>& stated = settings.training.lora_targets.named;
  out = stated.empty() ? adapter_target_names() : names_of(stated);
}

}  // namespace

std::string to_string(Release release) {
  return fmt::format("{:04}-{:02}", release.months / 12, release.months % 12 + 1);
}

const KeyType kReleaseMonth = {read_release, write_release, copy_field<&Training::release>,
                               accepted_release};
const KeyType kCudaGraphs = {read_cuda_graphs, write_cuda_graphs,
                             copy_field<&Training::cuda_graphs>,
                             [] { return "true, false, or " + one_of(graph_words()); }};
const KeyType kLoraTargets = {read_lora_targets, write_lora_targets,
                              copy_field<&Training::lora_targets>, accepted_targets};

}  // namespace stepcast
