// SPDX-License-Identifier: Apache-2.0
// One escaper per format. Each takes a foreign string - a name from a file, a path, the value of a
// flag, an error of a library - and gives what a reader of the format reads as that string. What a
// format cannot hold becomes U+FFFD; the README of this folder has the table.
#pragma once

#include <string>
#include <string_view>

#include "core/json_fwd.h"
#include "core/text/written.h"

namespace stepcast {

// Terminal: one line. Line feeds, controls and hidden characters are shown as \n, \x1b, \u202e; a
// line that a runner of CI would take for a command begins with a backslash.
std::string terminal_line(std::string_view text);
Written terminal_lines(std::string_view text);  // each line apart, all with an end

// Markdown (GitHub's): words inside a paragraph, heading, list or cell of a table.
std::string markdown_words(std::string_view text);
std::string markdown_line(std::string_view text);  // fit for the begin of a line, too
Written markdown_code_block(std::string_view text);

// CSV (RFC 4180). Text that a spreadsheet would run as a formula begins with an apostrophe; numbers
// stay what they are.
std::string csv_cell(std::string_view text);

// XML 1.0 and HTML: content, and the value of an attribute, in which readers take a line feed for a
// blank.
std::string xml_content(std::string_view text);
std::string xml_attribute(std::string_view text);

// The label of a vertex in DOT, before the writer of the graph puts it between quotes.
std::string dot_label(std::string_view text);

// "::error title=TITLE::TEXT", a line of its own. `kind`: error, warning or notice.
// https://docs.github.com/actions/reference/workflow-commands-for-github-actions
Written github_command(std::string_view kind, std::string_view title, std::string_view text);

// YAML: whether the text may stand without quotes and is still text. The library quotes the rest.
bool is_plain_yaml(std::string_view text);

// Shell: a word of bash, and a name inside a comment, which no character may end.
std::string shell_word(std::string_view text);
std::string in_comment(std::string_view text);

// JSON. Characters that a terminal must not see are escapes, invalid bytes U+FFFD. `indent`: in
// blanks, -1 for one line; no line feed at the end.
std::string json_literal(std::string_view text);
std::string json_text(const SortedJson& value, int indent = -1);
std::string json_text(const Json& value, int indent = -1);
Written json_file(const SortedJson& value, int indent = -1);  // with a line feed at the end
Written json_file(const Json& value, int indent = -1);
std::string json_in_script(const std::string& json);  // inside <script> of a page

// TOML that the library wrote: in its texts, what a terminal must not see becomes an escape.
std::string toml_escapes(std::string text);

}  // namespace stepcast
