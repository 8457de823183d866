// SPDX-License-Identifier: Apache-2.0
// Escapes each text of its standard input for one format, so that readers of the format in other
// languages can be asked what they read: `escape_each FORMAT`. Texts end with a zero byte.
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "core/json_tree.h"
#include "core/text/characters.h"
#include "core/text/escape.h"
#include "recipes/kubernetes.h"
#include "recipes/torchtitan.h"

namespace stepcast {
namespace {

// The text is the name of a container's image here.
std::string as_yaml(const std::string& text) {
  return kubernetes_manifest({1, 1}, {{"launch.sh", "#!/bin/sh", true}}, PodJob::kJobSet, text);
}

std::string as_toml(const std::string& text) {
  return json_to_toml(json_text(Json{{"key", text}}));
}

using Escaper = std::function<std::string(const std::string&)>;

const std::map<std::string, Escaper>& escapers() {
  static const std::map<std::string, Escaper> all = {
      {"terminal", [](const std::string& text) { return terminal_line(text); }},
      {"markdown", [](const std::string& text) { return markdown_line(text); }},
      {"markdown_code",
       [](const std::string& text) { return markdown_code_block(text + "\n").text(); }},
      {"csv", [](const std::string& text) { return csv_cell(text); }},
      {"xml", [](const std::string& text) { return xml_content(text); }},
      {"xml_attribute", [](const std::string& text) { return xml_attribute(text); }},
      {"graphml", [](const std::string& text) { return shown_characters(text); }},
      {"dot", [](const std::string& text) { return dot_label(text); }},
      {"github",
       [](const std::string& text) { return github_command("notice", text, text).text(); }},
      {"yaml", as_yaml},
      {"toml", as_toml},
      {"shell", [](const std::string& text) { return shell_word(text); }},
      {"comment", [](const std::string& text) { return in_comment(text); }},
      {"json", [](const std::string& text) { return json_literal(text); }},
      {"json_in_script",
       [](const std::string& text) { return json_in_script(json_literal(text)); }}};
  return all;
}

std::string everything(std::FILE* file) {
  std::string out;
  for (int c = std::getc(file); c != EOF; c = std::getc(file)) out += static_cast<char>(c);
  return out;
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  using namespace stepcast;
  const auto found = escapers().find(argc == 2 ? argv[1] : "");
  if (found == escapers().end()) {
    std::fputs("usage: escape_each FORMAT\n", stderr);
    return 2;
  }
  std::istringstream texts(everything(stdin));
  for (std::string text; std::getline(texts, text, '\0');) {
    const std::string escaped = found->second(text) + '\0';
    std::fwrite(escaped.data(), 1, escaped.size(), stdout);
  }
  return 0;
}
