// SPDX-License-Identifier: Apache-2.0
// Headings, lists and tables of a report that is printed as text or as Markdown.
#pragma once

#include <string>

#include "report/text_table.h"

namespace stepcast {

enum class Form { kText, kMarkdown };

std::string heading(const std::string& text, Form form);  // of a section
std::string bullet(const std::string& text, Form form);
std::string shown(const TextTable& table, Form form);

}  // namespace stepcast
