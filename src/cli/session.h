// SPDX-License-Identifier: Apache-2.0
// Every command shares this: exit codes, the data folders, where output goes, how errors look.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "core/error.h"
#include "core/quantity.h"
#include "core/result.h"
#include "core/text/written.h"
#include "report/document_form.h"
#include "stepcast/detail/data_root.h"

namespace stepcast::cli {

enum ExitCode : int {
  kOk = 0,
  kInternalError = 1,  // the program is wrong, or a rank died
  kUsageError = 2,     // flags, files and values, or a machine without room; nothing was written
  kDoesNotFit = 3,
  kRegression = 4,
  kOutOfTolerance = 5,
  kNotKept = 6,  // --require
};

struct OutputOptions {
  std::string format = "table";  // the one that is fitted to the screen
  std::string file;  // empty: standard output
  bool no_color = false;
  bool quiet = false;
};

// A command of the program; `run` returns the exit code.
struct Command {
  CommandLine line;
  std::function<int()> run;
  bool takes_any_words = false;  // one that only says why it is not there
};

// --format one of `formats` where there are several, -o, --no-color, --quiet.
void add_output_flags(CommandLine app, OutputOptions& output,
                      const std::vector<std::string>& formats);
void add_html_flag(CommandLine app, std::string& file);
void add_markdown_flag(CommandLine app, std::string& file);  // beside --format, for CI
void add_data_flag(CommandLine app, std::string& data);
void add_threads_flag(CommandLine app, int& threads);
void add_memory_limit_flag(CommandLine app, std::string& limit);
// "16 GB"; the usual limit where nothing is said.
Result<ByteCount> memory_limit_of(const std::string& limit);
// Adds --memory-limit to a command that forecasts, and holds its forecasts to it.
Command within_memory_limit(Command command);
int threads_of(int asked);  // 0: as many as the machine has

// `data` when given, else what STEPCAST_DATA names, else share/stepcast beside the program's
// folder, else the source tree above it, else the data inside the program.
Result<DataRoot> find_data(const std::string& data);

// Returns the folder that TMPDIR names, else /tmp.
std::string temporary_folder();

// The form of what a command prints as text: colored on a terminal that may have colors.
Form text_form(const OutputOptions& output);

// Columns of the terminal that standard output is, as it or COLUMNS says; a usual width elsewhere.
std::size_t screen_width();

// Writes to standard error. A write that fails is let go: nobody is left to be told, and the exit
// code still says how the command ended.
void tell(const Written& text);
void tell_line(std::string_view words);
// A line that the next one writes over, on terminals alone.
void tell_progress(std::string_view words);
void clear_progress();
// Takes no memory itself.
void tell_out_of_memory();
// One line per error on standard error; returns kUsageError.
int report_errors(const Errors& errors);
void note(const OutputOptions& output, std::string_view text);  // a line on standard error
// "wrote FILE", where one was asked for beside the output.
void note_written(const OutputOptions& output, const std::string& file);

}  // namespace stepcast::cli
