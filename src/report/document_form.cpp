// SPDX-License-Identifier: Apache-2.0
#include "report/document_form.h"

#include <fmt/format.h>

#include "report/number_text.h"

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

std::string count_text(double count) {
  return count < 1000 ? fmt::format("{:.0f}", count) : number_text(count, 3);
}

}  // namespace stepcast
