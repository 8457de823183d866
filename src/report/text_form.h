// SPDX-License-Identifier: Apache-2.0
// One report as text or as Markdown: headings, bullets and tables in either.
#pragma once

#include <string>

#include "report/text_table.h"

namespace stepcast {

enum class Form { kText, kMarkdown };

std::string heading(const std::string& text, Form form);
std::string bullet(const std::string& text, Form form);
std::string shown(const TextTable& table, Form form);

}  // namespace stepcast
