// SPDX-License-Identifier: Apache-2.0
// A child process in a process group of its own, with its output. No process of the group outlives
// the object. The child is told to end (SIGTERM) when this process dies, however it dies. More
// exactly, it is told when the thread that started it ends, so that thread has to stay.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

struct ProcessCommand {
  std::string program;  // a path; PATH is not searched
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=VALUE, all of it
  std::string working_folder;            // empty: that of this process
};

struct ProcessExit {
  bool by_signal = false;
  int value = 0;  // the exit code or the signal
  bool ok() const { return !by_signal && value == 0; }
};

class ProcessGroup {
 public:
  enum class Stream { kOutput, kError };
  using Sink = std::function<void(Stream, std::string_view)>;

  // Standard input is empty. An error is a program that cannot be executed.
  static Result<ProcessGroup> start(const ProcessCommand& command);
  ProcessGroup(ProcessGroup&& other) noexcept;
  ProcessGroup& operator=(ProcessGroup&&) = delete;
  ~ProcessGroup();  // kills what still runs, as kill() does

  pid_t id() const { return id_; }

  // Hands over what the group has written, waiting for it until `timeout`, until the child has
  // ended, or until the file `wake` is readable (-1: none). Returns whether the child still runs.
  bool wait(std::chrono::milliseconds timeout, int wake, const Sink& sink);

  // Asks the group to end (SIGTERM).
  void terminate();

  // Ends what is left of the group (SIGKILL), hands over the last output, reaps the child.
  ProcessExit kill(const Sink& sink);

  // Why not all that it wrote could be read, as errno; 0 when all was.
  int refused() const { return refused_; }

 private:
  ProcessGroup() = default;
  bool ended() const;
  bool read(const Sink& sink);

  pid_t id_ = 0;     // 0: reaped
  int refused_ = 0;  // errno of a read that the system refused
  ProcessExit exit_;
  int output_ = -1;
  int error_ = -1;
};

}  // namespace stepcast
