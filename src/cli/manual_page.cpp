// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/completion.h"
#include "core/text/escape.h"
#include "report/wrapped_words.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kLine = 80;

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

// Text in short lines of the page's source, which man fills anew.
std::string filled(const std::string& text) {
  std::string lines;
  for (const std::string& line : wrapped_words(text, kLine, kLine, WideWords::kKept)) {
    lines += (lines.empty() ? "" : "\n") + line;
  }
  return roff(lines);
}

std::string flag_text(const DescribedFlag& flag) {
  std::string names;
  for (const std::string& name : flag.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  const bool is_flag = flag.names.front().starts_with("-");
  if (is_flag && !flag.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(flag.value));
  return fmt::format(".TP\n{}\n{}\n", names, filled(flag.help));
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
  out += fmt::format(".SH NAME\nstepcast \\- {}\n.SH SYNOPSIS\n", filled(program.help));
  std::vector<NamedCommand> commands = all_commands(program);
  std::erase_if(commands, [](const NamedCommand& one) { return !one.command->commands.empty(); });
  for (const NamedCommand& one : commands) out += usage(one) + "\n.br\n";
  out += fmt::format(".SH DESCRIPTION\n{}\n", filled(program.footer));
  for (const NamedCommand& one : commands) {
    out += fmt::format(".SH stepcast {}\n{}\n", roff(one.words), filled(one.command->help));
    for (const DescribedFlag& word : one.command->words) out += flag_text(word);
    for (const DescribedFlag& flag : one.command->flags) out += flag_text(flag);
    if (!one.command->footer.empty()) {
      out += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(one.command->footer));
    }
  }
  out +=
      ".SH ENVIRONMENT\n.TP\n\\fBSTEPCAST_DATA\\fR\na folder with models, topologies, profiles, "
      "suites and prices,\nin place of the data inside the program\n.TP\n\\fBNO_COLOR\\fR\n"
      "prints plain text\n.TP\n\\fBCOLUMNS\\fR\n"
      "how wide text may be; the terminal's width unless set, and 100 where there is none\n"
      ".SH EXIT STATUS\n0 on success; 1 after an internal error or a rank that died;\n"
      "2 for flags, files and values; 3 when nothing fits in memory; 4 for a regression;\n"
      "5 when a run is out of tolerance; 6 when a demand of \\-\\-require is not kept.\n";
  return terminal_lines(out);
}

}  // namespace stepcast::cli
