// SPDX-License-Identifier: Apache-2.0
// Drives a target with the seeds of its corpus and seeded mutations of them, under any compiler:
//
//   fuzz_targets --target=NAME --runs=N --seed=N --finding=FILE
//
// An input that ends the target by a signal or an exception, or that takes 25 s, is written to
// FILE.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "core/text_file.h"
#include "fuzz/mutation.h"
#include "fuzz/target.h"
#include "places.h"

namespace {

using namespace stepcast;
using namespace stepcast::fuzz;

constexpr unsigned kLongest_s = 25;

std::string current;  // the input that is being read
std::string finding = "finding";

void keep_current() {
  const int file = ::open(finding.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const bool kept = file >= 0 && ::write(file, current.data(), current.size()) >= 0;
  std::fprintf(stderr, "%s %s\n", kept ? "the input is" : "the input could not be written to",
               finding.c_str());
}

void on_signal(int number) {
  std::fprintf(stderr, "signal %d\n", number);
  keep_current();
  ::_exit(1);
}

// The handler has a stack of its own: one of the faults looked for is the end of the other one.
void catch_signals() {
  static char stack[1 << 16];
  const stack_t own{stack, 0, sizeof stack};
  ::sigaltstack(&own, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGALRM}) {
    ::sigaction(number, &action, nullptr);
  }
}

void run(const Target& target, std::string input) {
  current = std::move(input);
  if (current.size() > target.most_bytes) current.resize(target.most_bytes);
  ::alarm(kLongest_s);
  try {
    target.run(current);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exception: %s\n", error.what());
    keep_current();
    std::exit(1);
  }
  ::alarm(0);
}

std::vector<std::string> texts_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> out;
  for (const auto& file : files) out.push_back(read_text_file(file.string()).value());
  return out;
}

std::string value_of(int count, char** words, std::string_view flag, const char* otherwise) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word.starts_with(flag)) return std::string(word.substr(flag.size()));
  }
  return otherwise;
}

}  // namespace

int main(int count, char** words) {
  const Target& target = *target_of_words(count, words);
  const std::string folder = source_folder() + "/tests/fuzz/";
  const long runs = std::stol(value_of(count, words, "--runs=", "1000"));
  finding = value_of(count, words, "--finding=", "finding");
  const std::vector<std::string> seeds = texts_in(folder + "corpus/" + target.name);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s has no seeds\n", target.name);
    return 2;
  }
  Mutation mutation(
      std::stoull(value_of(count, words, "--seed=", "1")), seeds,
      words_of_dictionary(
          read_text_file(folder + "dictionaries/" + target.dictionary + ".dict").value()));
  catch_signals();
  for (const std::string& seed : seeds) run(target, seed);
  for (long i = 0; i < runs; ++i) run(target, mutation.next());
  std::printf("%s: %zu seeds and %ld mutations\n", target.name, seeds.size(), runs);
  return 0;
}
