// SPDX-License-Identifier: Apache-2.0
#include "calibrate/device_name.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace stepcast {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

// How the device is built in: "sxm", "pcie", "nvl", or "" where nothing says so.
std::string mounting(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const char* form : {"sxm", "pcie"}) {
      if (word.starts_with(form)) return form;
    }
    if (word == "nvl") return word;
  }
  return "";
}

}  // namespace

bool names_device(std::string_view text, const Accelerator& accelerator) {
  const std::vector<std::string> said = words_of(text);
  const std::vector<std::string> own = words_of(accelerator.name);
  if (own.empty()) return false;
  const std::string& model = own.front();
  bool found = std::find(said.begin(), said.end(), model) != said.end();
  for (std::size_t i = 0; i + 1 < said.size(); ++i) found = found || said[i] + said[i + 1] == model;
  const std::string a = mounting(said), b = mounting(own);
  return found && (a.empty() || b.empty() || a == b);
}

}  // namespace stepcast
