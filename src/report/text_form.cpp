// SPDX-License-Identifier: Apache-2.0
#include "report/text_form.h"

#include <fmt/format.h>

namespace stepcast {

std::string heading(const std::string& text, Form form) {
  return form == Form::kMarkdown ? fmt::format("\n### {}\n\n", text) : fmt::format("\n{}\n", text);
}

std::string bullet(const std::string& text, Form form) {
  return fmt::format("{}{}\n", form == Form::kMarkdown ? "- " : "  ", text);
}

std::string shown(const TextTable& table, Form form) {
  return form == Form::kMarkdown ? table.markdown() : table.text();
}

}  // namespace stepcast
