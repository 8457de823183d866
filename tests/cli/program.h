// SPDX-License-Identifier: Apache-2.0
// Runs the built program as a user does, and keeps what it prints apart.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "places.h"

namespace stepcast::testing {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A folder of the test's own, gone with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "stepcast-XXXXXX").string();
    const char* made = ::mkdtemp(name.data());
    EXPECT_NE(made, nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Outcome {
  int code = -1;
  std::string out;
  std::string error;
  nlohmann::json json() const {
    auto parsed = nlohmann::json::parse(out, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << out.substr(0, 500) << error;
    return parsed;
  }
};

// A sentence stays in one line, unless a test says how wide the screen is. `words` are quoted for
// the shell; a `redirection` of standard output replaces the file that the
// outcome is read from.
inline Outcome run_program(const std::string& program, const std::vector<std::string>& words,
                           const std::string& redirection = "") {
  const Folder folder;
  std::string command = "COLUMNS=\"${COLUMNS-10000}\" '" + program + "'";
  for (const std::string& word : words) command += " '" + word + "'";
  command += " 2>'" + folder / "error" + "' ";
  const bool to_file = redirection.find('>') == std::string::npos;
  command += redirection + (to_file ? " >'" + folder / "out" + "'" : "");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "out"),
          read_file(folder / "error")};
}

inline Outcome run(const std::vector<std::string>& words, const std::string& redirection = "") {
  return run_program(program_path(), words, redirection);
}

// The words of a command for a layout on 16 GPUs that fits and is forecast quickly, and more words
// behind them.
inline std::vector<std::string> predict_words(const std::vector<std::string>& more = {}) {
  std::vector<std::string> out{"predict",   "--model",    "llama-3.1-8b",
                               "--cluster", "dgx-h100x2", "--global-batch",
                               "64",        "--tp",       "2",
                               "--pp",      "4",          "--seq",
                               "4096"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

inline bool mpirun_is_here() {
  std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/mpirun").c_str(), X_OK) == 0) return true;
  }
  return false;
}

inline void expect_refused(const Outcome& run) {
  EXPECT_EQ(run.code, 2) << run.error;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.error.rfind("error: ", 0), 0u) << run.error;
}

}  // namespace stepcast::testing
