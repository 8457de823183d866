// SPDX-License-Identifier: Apache-2.0
// Everything a command writes: collected first, written only after success, files by a temporary
// name and a rename, so that a reader never sees half of one. When one of them cannot be written,
// none takes its place, and all are kept elsewhere (cli/kept_results.h).
#pragma once

#include <string>
#include <vector>

#include "cli/kept_results.h"
#include "cli/session.h"

namespace stepcast::cli {

// Text that is printed again at once, like help, is not worth a file that somebody has to remove.
enum class Worth { kKeeping, kNothing };

class Output {
 public:
  explicit Output(Worth worth = Worth::kKeeping) : worth_(worth) {}
  // A file that is read: writing over it is an error. Names that are no files are ignored.
  void protect(const std::string& flag, const std::string& path);
  // The flag names the file in errors ("-o", "--trace"). Empty paths are ignored.
  void plan(const std::string& flag, const std::string& path);
  // Paths that cannot be written, or that two flags name; call before any work. Folders are proven
  // by a file in them that has no name.
  Errors check() const;

  void set_file(const std::string& path, Written content);
  // -o or standard output; tables are fitted to the screen.
  void set_main(const OutputOptions& options, Written content);
  void set_as_it_is(const std::string& path, Written content);  // standard output without a path

  // Writes the files, then standard output. kOk, or reports what went wrong and where the results
  // are kept, and returns its code.
  int commit() const;

 private:
  struct Target {
    std::string flag;
    std::string path;
  };
  struct File {
    std::string path;
    Written content;
  };

  std::vector<FinishedResult> all() const;
  // Errors, and which results are then not where they should be.
  Errors deliver(std::vector<FinishedResult>& left) const;

  Worth worth_;
  std::vector<Target> targets_;
  std::vector<Target> inputs_;
  std::vector<File> files_;
  Written standard_output_;
};

// Prints text that can be printed again at once, and returns the exit code.
int print(Written text);

}  // namespace stepcast::cli
