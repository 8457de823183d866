// SPDX-License-Identifier: Apache-2.0
#include "launch/process_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace stepcast {
namespace {

using std::chrono::milliseconds;

// The end of a child that keeps silent is seen this late at most.
constexpr milliseconds kTick{20};

// Somebody else has reaped the child: this process ignores SIGCHLD.
constexpr int kUnknownExit = 255;

struct Pipe {
  int read = -1;
  int write = -1;
};

void close_file(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

class Pipes {
 public:
  Pipes() {
    for (Pipe& pipe : pipes_) {
      std::array<int, 2> files{-1, -1};
      ok_ = ok_ && ::pipe2(files.data(), O_CLOEXEC) == 0;
      pipe = {files[0], files[1]};
    }
  }
  ~Pipes() {
    for (Pipe& pipe : pipes_) {
      close_file(pipe.read);
      close_file(pipe.write);
    }
  }
  bool ok() const { return ok_; }
  Pipe& output() { return pipes_[0]; }
  Pipe& error() { return pipes_[1]; }
  Pipe& trouble() { return pipes_[2]; }  // why the program was not executed

 private:
  std::array<Pipe, 3> pipes_;
  bool ok_ = true;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

struct Child {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* working_folder;
  pid_t parent;
};

// Runs between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void become(const Child& child, Pipes& pipes) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const bool orphan = ::getppid() != child.parent;  // it died before prctl
  const int empty = ::open("/dev/null", O_RDONLY);
  const bool ready = !orphan && empty >= 0 && ::dup2(empty, 0) == 0 &&
                     ::dup2(pipes.output().write, 1) == 1 && ::dup2(pipes.error().write, 2) == 2 &&
                     (*child.working_folder == '\0' || ::chdir(child.working_folder) == 0);
  if (ready) {
    // An ignored signal stays ignored across exec.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGXFSZ}) {
      ::signal(signal, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(child.program, child.arguments, child.environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(pipes.trouble().write, &error, sizeof error);
  ::_exit(127);
}

// Signals are blocked as long as the child still has this process's handlers.
pid_t fork_with_signals_blocked(const Child& child, Pipes& pipes) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t id = ::fork();
  if (id == 0) become(child, pipes);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return id;
}

tl::unexpected<Errors> cannot_start(const ProcessCommand& command, int error) {
  return failure({ErrorCode::kIo, fmt::format("cannot be started: {}", std::strerror(error)),
                  command.program, "", ""});
}

// Hands over what is there, at most one buffer: a flood must not keep the caller from its time
// limits. Closes the file at its end. Where the system refuses to read it, `refused` says why, and
// it stays open: who writes there must not be killed for that. Returns whether there was any.
bool read_some(int& file, ProcessGroup::Stream stream, const ProcessGroup::Sink& sink,
               int& refused) {
  if (file < 0) return false;
  std::array<char, 65536> buffer;
  ssize_t size = 0;
  do {
    size = ::read(file, buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  if (size > 0 && sink) sink(stream, std::string_view(buffer.data(), static_cast<size_t>(size)));
  if (size < 0 && errno != EAGAIN) refused = errno;
  if (size == 0) close_file(file);
  return size > 0;
}

}  // namespace

Result<ProcessGroup> ProcessGroup::start(const ProcessCommand& command) {
  Pipes pipes;
  if (!pipes.ok()) return cannot_start(command, errno);
  std::vector<std::string> words{command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(command.environment);
  const Child child{command.program.c_str(), arguments.data(), environment.data(),
                    command.working_folder.c_str(), ::getpid()};

  ProcessGroup group;
  group.id_ = fork_with_signals_blocked(child, pipes);
  if (group.id_ < 0) {
    group.id_ = 0;
    return cannot_start(command, errno);
  }
  ::setpgid(group.id_, group.id_);  // by both, so that it is done whoever comes first
  close_file(pipes.trouble().write);
  int error = 0;
  ssize_t size = 0;
  do {
    size = ::read(pipes.trouble().read, &error, sizeof error);  // its end: the program runs
  } while (size < 0 && errno == EINTR);
  if (size == static_cast<ssize_t>(sizeof error)) return cannot_start(command, error);

  group.output_ = std::exchange(pipes.output().read, -1);
  group.error_ = std::exchange(pipes.error().read, -1);
  for (const int file : {group.output_, group.error_}) ::fcntl(file, F_SETFL, O_NONBLOCK);
  return group;
}

ProcessGroup::ProcessGroup(ProcessGroup&& other) noexcept
    : id_(std::exchange(other.id_, 0)),
      refused_(other.refused_),
      exit_(other.exit_),
      output_(std::exchange(other.output_, -1)),
      error_(std::exchange(other.error_, -1)) {}

ProcessGroup::~ProcessGroup() {
  kill({});
  close_file(output_);
  close_file(error_);
}

bool ProcessGroup::ended() const {
  if (id_ == 0) return true;
  siginfo_t info{};
  // Not reaped yet: as long as it is a zombie nobody else can be given its number.
  const int result = ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
  return result != 0 || info.si_pid == id_;
}

bool ProcessGroup::read(const Sink& sink) {
  const bool output = read_some(output_, Stream::kOutput, sink, refused_);
  return read_some(error_, Stream::kError, sink, refused_) || output;
}

bool ProcessGroup::wait(milliseconds timeout, int wake, const Sink& sink) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const bool running = !ended();
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    const milliseconds pause = running ? std::clamp(left, milliseconds{0}, kTick) : milliseconds{0};
    std::array<pollfd, 3> files{{{output_, POLLIN, 0}, {error_, POLLIN, 0}, {wake, POLLIN, 0}}};
    const int ready = ::poll(files.data(), files.size(), static_cast<int>(pause.count()));
    const bool output = ready > 0 && (files[0].revents != 0 || files[1].revents != 0);
    if (output) read(sink);
    if (!running || output || left <= milliseconds{0} || (ready > 0 && files[2].revents != 0)) {
      return running;
    }
  }
}

void ProcessGroup::terminate() {
  if (id_ != 0) ::kill(-id_, SIGTERM);
}

ProcessExit ProcessGroup::kill(const Sink& sink) {
  if (id_ == 0) return exit_;
  ::kill(-id_, SIGKILL);
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = ::waitpid(id_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped < 0) {
    exit_ = {false, kUnknownExit};
  } else if (WIFSIGNALED(status)) {
    exit_ = {true, WTERMSIG(status)};
  } else {
    exit_ = {false, WEXITSTATUS(status)};
  }
  id_ = 0;
  // Bounded, because a writer may have left the group; a pipe holds 64 KiB unless told otherwise.
  for (int i = 0; i < 64 && read(sink); ++i) continue;
  return exit_;
}

}  // namespace stepcast
