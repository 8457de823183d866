// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/completion.h"
#include "core/text/escape.h"

namespace stepcast::cli {
namespace {

// Text of a page of man: a hyphen is one that can be copied, and no line begins a request.
std::string roff(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char letter : text) {
    if (begins && (letter == '.' || letter == '\'')) out += "\\&";
    begins = letter == '\n';
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string flag_text(const DescribedFlag& flag) {
  std::string names;
  for (const std::string& name : flag.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  const bool is_flag = flag.names.front().starts_with("-");
  if (is_flag && !flag.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(flag.value));
  return fmt::format(".TP\n{}\n{}\n", names, roff(flag.help));
}

std::string usage(const NamedCommand& one) {
  std::string out = fmt::format("\\fBstepcast {}\\fR [\\fIflags\\fR]", roff(one.words));
  for (const DescribedFlag& word : one.command->words) {
    out += fmt::format(" [\\fI{}\\fR]", roff(word.names.front()));
  }
  return out;
}

}  // namespace

Written manual_page(const DescribedCommand& program, const std::string& version) {
  std::string out = fmt::format(".TH STEPCAST 1 \"\" \"stepcast {}\" \"User commands\"\n", version);
  out += fmt::format(".SH NAME\nstepcast \\- {}\n.SH SYNOPSIS\n", roff(program.help));
  std::vector<NamedCommand> commands = all_commands(program);
  std::erase_if(commands, [](const NamedCommand& one) { return !one.command->commands.empty(); });
  for (const NamedCommand& one : commands) out += usage(one) + "\n.br\n";
  out += fmt::format(".SH DESCRIPTION\n{}\n", roff(program.footer));
  for (const NamedCommand& one : commands) {
    out += fmt::format(".SH stepcast {}\n{}\n", roff(one.words), roff(one.command->help));
    for (const DescribedFlag& word : one.command->words) out += flag_text(word);
    for (const DescribedFlag& flag : one.command->flags) out += flag_text(flag);
    if (!one.command->footer.empty()) {
      out += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(one.command->footer));
    }
  }
  out +=
      ".SH ENVIRONMENT\n.TP\n\\fBSTEPCAST_DATA\\fR\na folder with models, topologies, profiles, "
      "suites and prices, in place of the data inside the program\n.TP\n\\fBNO_COLOR\\fR\n"
      "prints plain text\n"
      ".SH EXIT STATUS\n0 on success; 1 after an internal error or a rank that died; 2 for flags, "
      "files and values; 3 when nothing fits in memory; 4 for a regression; 5 when a run is out of "
      "tolerance; 6 when a demand of \\-\\-require is not kept.\n";
  return terminal_lines(out);
}

}  // namespace stepcast::cli
