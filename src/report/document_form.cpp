// SPDX-License-Identifier: Apache-2.0
#include "report/document_form.h"

#include <fmt/format.h>

#include "core/text/escape.h"

namespace stepcast {
namespace {

Written marked(std::string_view before, std::string_view words, std::string_view after, Form form) {
  const bool markdown = form == Form::kMarkdown;
  return Written::escaped(
      fmt::format("{}{}{}", before, markdown ? markdown_line(words) : terminal_line(words), after));
}

}  // namespace

Written title(std::string_view words, Form form) {
  return form == Form::kMarkdown ? marked("## ", words, "\n\n", form) : line(words, form);
}

Written heading(std::string_view words, Form form) {
  if (form == Form::kMarkdown) return marked("\n### ", words, "\n\n", form);
  return "\n" + colored_line(words, "1", form);
}

Written line(std::string_view words, Form form) { return marked("", words, "\n", form); }

Written strong_line(std::string_view words, Form form) {
  return form == Form::kMarkdown ? marked("**", words, "**\n", form) : line(words, form);
}

Written bullet(std::string_view words, Form form) {
  return marked(form == Form::kMarkdown ? "- " : "  ", words, "\n", form);
}

Written colored_line(std::string_view words, std::string_view color, Form form) {
  if (form != Form::kColored) return line(words, form);
  return marked(fmt::format("\x1b[{}m", color), words, "\x1b[0m\n", form);
}

Written shown(const TextTable& table, Form form) {
  return form == Form::kMarkdown ? table.markdown() : table.text();
}

}  // namespace stepcast
