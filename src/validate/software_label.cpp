// SPDX-License-Identifier: Apache-2.0
#include "validate/software_label.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>

namespace stepcast {
namespace {

// By a word of the label, the kernel of fused attention.
constexpr std::pair<const char*, const char*> kKernels[] = {
    {"Triton flash attention", "triton"},
    {"flash-attn 1", "fa1"},
    {"flash-attn 2", "fa2"},
    {"flash-attn 3", "fa3"},
};

}  // namespace

void take_from_label(nlohmann::json& training) {
  if (!training.is_object() || !training.contains("software")) return;
  if (!training["software"].is_string()) return;
  const std::string label = training["software"];
  static const std::regex month(R"(\b(20\d\d-(0[1-9]|1[0-2]))\b)");
  std::smatch found;
  if (!training.contains("release") && std::regex_search(label, found, month)) {
    training["release"] = found[1].str();
  }
  if (training.contains("attention_kernel")) return;
  if (const auto kind = training.find("attention"); kind != training.end() && *kind != "flash") {
    return;
  }
  for (const auto& [word, kernel] : kKernels) {
    if (label.find(word) != std::string::npos) training["attention_kernel"] = kernel;
  }
}

}  // namespace stepcast
