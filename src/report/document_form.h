// SPDX-License-Identifier: Apache-2.0
// Lines, headings, lists and tables of a report that is printed as text or as Markdown. Each takes
// plain words, whatever is in them, and escapes them for the form.
#pragma once

#include <string_view>

#include "core/text/written.h"
#include "report/text_table.h"

namespace stepcast {

enum class Form { kText, kColored, kMarkdown };  // colored: text with ANSI escapes

Written title(std::string_view words, Form form);    // of the document; in text a line
Written heading(std::string_view words, Form form);  // of a section
Written line(std::string_view words, Form form);
Written strong_line(std::string_view words, Form form);  // in text a line
Written bullet(std::string_view words, Form form);
// `color`: the parameters of ANSI's escape, such as "1;32"; without effect unless colored.
Written colored_line(std::string_view words, std::string_view color, Form form);
Written shown(const TextTable& table, Form form);

// Separates paragraphs: Markdown needs an empty line where text goes on.
inline Written paragraph_end(Form form) { return form == Form::kMarkdown ? "\n" : Written(); }

}  // namespace stepcast
