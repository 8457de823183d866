// SPDX-License-Identifier: Apache-2.0
// Fails one call of a program to the system, chosen by its number. It is loaded before a program
// starts (LD_PRELOAD) and stands between it and the C library, so it meets every file, clock and
// allocation, whoever asks for it, and the program that is tested is the one that users have.
// docs/design/013-faults-at-the-system.md says why. tests/faults/sweep.py uses it.
//
//   STEPCAST_FAULT_PROGRAM  the program in which calls count and fail, by the name of its file
//   STEPCAST_FAULT          KIND:N fails the N-th call of a kind, KIND:N+ also all after it, and
//                           clock:N:SECONDS sets the clocks forward from their N-th reading on;
//                           KIND@PART:N fails the N-th call that meets a path with this part
//   STEPCAST_FAULT_COUNTS   a file that takes a line "KIND NUMBER" for each kind when main ends
//   STEPCAST_FAULT_STACKS   a file that takes, for each allocation whose callers are new, its
//   number
//                           and a number that stands for the callers
//   STEPCAST_FAULT_LOG      a file that takes a line for each call that was failed: kind and path
//   STEPCAST_FAULT_TRACE    a file that takes the callers of each failed call, for addr2line
//
// Kinds: open (also of folders and pipes, and making them), read, write (also shortening), short (a
// write that writes one byte of several), sync, rename (also links), allocation, thread, clock.
// Calls count from the start of main to its end, when the program or the C++ library makes them.
// What is written to standard error is not counted: a program cannot say there that it cannot say
// anything.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <dirent.h>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

enum Kind { kOpen, kRead, kWrite, kShort, kSync, kRename, kAllocation, kThread, kClock, kKinds };
constexpr const char* kNames[] = {"open",   "read",       "write",  "short", "sync",
                                  "rename", "allocation", "thread", "clock"};

struct Range {
  std::uintptr_t begin, end;
};
constexpr int kMostRanges = 64;
constexpr std::size_t kSlots = 1u << 20;  // of a table of call stacks
constexpr int kDepth = 24;                // callers that tell one allocation from another

Range ranges[kMostRanges];
int range_count = 0;
bool armed = false;
std::atomic<long> counts[kKinds];
int fault_kind = -1;
char fault_part[256] = "";  // of the path that the call meets; "" is part of every path
long fault_number = 0;
std::atomic<long> fault_matches{0};
std::atomic<bool> fault_began{false};
bool fault_goes_on = false;
long clock_shift_s = 0;
const char* log_file = nullptr;
int stacks_file = -1;
std::atomic<std::uint64_t> stacks[kSlots];
__attribute__((tls_model("initial-exec"))) thread_local int inside = 0;

// While one lives, what this file itself does is not counted.
struct Inside {
  Inside() { ++inside; }
  ~Inside() { --inside; }
};

template <class F>
F next(const char* name) {
  const Inside guard;
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

bool counted_caller(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  for (int i = 0; i < range_count; ++i) {
    if (ranges[i].begin <= address && address < ranges[i].end) return true;
  }
  return false;
}

int note_object(dl_phdr_info* info, std::size_t, void*) {
  const char* name = info->dlpi_name;
  const bool program = name[0] == '\0';
  if (!program && !std::strstr(name, "libstdc++") && !std::strstr(name, "libfmt") &&
      !std::strstr(name, "libyaml-cpp")) {
    return 0;
  }
  for (int i = 0; i < info->dlpi_phnum && range_count < kMostRanges; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    ranges[range_count++] = {begin, begin + segment.p_memsz};
  }
  return 0;
}

void append_line(const char* file, const char* line) {
  const int target = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (target < 0) return;
  ::syscall(SYS_write, target, line, std::strlen(line));
  ::syscall(SYS_close, target);
}

void log_fault(Kind kind, const char* path) {
  if (log_file == nullptr) return;
  const Inside guard;
  char line[4352];
  std::snprintf(line, sizeof line, "%s %s\n", kNames[kind], path);
  append_line(log_file, line);
}

void trace_fault() {
  const char* file = std::getenv("STEPCAST_FAULT_TRACE");
  if (file == nullptr) return;
  const int target = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  void* frames[2 * kDepth];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 2 * kDepth), target);
  ::syscall(SYS_close, target);
}

// Returns a caller's place in its object, which is the same in every run.
std::uint64_t place_of(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  for (int i = 0; i < range_count; ++i) {
    if (ranges[i].begin > address || address >= ranges[i].end) continue;
    return (static_cast<std::uint64_t>(i + 1) << 48) | (address - ranges[i].begin);
  }
  return 0;
}

void note_stack(long number) {
  void* frames[kDepth];
  const int depth = ::backtrace(frames, kDepth);
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (int i = 2; i < depth; ++i) hash = (hash ^ place_of(frames[i])) * 1099511628211u;
  if (hash == 0) hash = 1;
  for (std::size_t slot = hash % kSlots;; slot = (slot + 1) % kSlots) {
    std::uint64_t free_slot = 0;
    if (stacks[slot].compare_exchange_strong(free_slot, hash)) break;
    if (free_slot == hash) return;
  }
  char line[64];
  const int length = std::snprintf(line, sizeof line, "%ld %016lx\n", number, hash);
  ::syscall(SYS_write, stacks_file, line, static_cast<std::size_t>(length));
}

// Counts the call, and says whether it is to fail.
bool fails(Kind kind, const void* caller, const char* path) {
  if (!armed || inside > 0 || !counted_caller(caller)) return false;
  const Inside guard;
  const long number = ++counts[kind];
  if (kind == kAllocation && stacks_file >= 0) note_stack(number);
  if (fault_kind != kind) return false;
  const bool begins = std::strstr(path, fault_part) != nullptr && ++fault_matches == fault_number;
  if (begins) fault_began = true;
  if (!begins && !(fault_goes_on && fault_began)) return false;
  if (kind != kClock) log_fault(kind, path);
  trace_fault();
  return true;
}

const char* path_of(int file, char (&buffer)[4096]) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link, buffer, sizeof buffer - 1);
  buffer[length < 0 ? 0 : length] = '\0';
  return buffer;
}

bool fails_on(Kind kind, const void* caller, int file) {
  if (!armed || inside > 0 || file == STDERR_FILENO) return false;
  // A disk that stays full is not where standard output goes.
  if (kind == kWrite && fault_goes_on && file == STDOUT_FILENO) return false;
  char buffer[4096] = "";
  if (fault_kind == kind) path_of(file, buffer);
  return fails(kind, caller, buffer);
}

template <class T>
T refused(int reason, T value) {
  errno = reason;
  return value;
}

int reason_of_open(int flags) { return flags & (O_CREAT | O_WRONLY | O_RDWR) ? ENOSPC : EMFILE; }

mode_t mode_in(int flags, va_list& rest) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? static_cast<mode_t>(va_arg(rest, int)) : 0;
}

// KIND[@PART]:N, with "+" or ":SECONDS" behind it.
bool read_fault(const char* fault) {
  const char* colon = std::strrchr(fault, ':');
  const char* at = std::strchr(fault, '@');
  if (colon == nullptr) return false;
  const bool is_clock = std::strncmp(fault, "clock:", 6) == 0;
  if (is_clock) colon = std::strchr(fault, ':');
  const auto size = static_cast<std::size_t>((at != nullptr ? at : colon) - fault);
  for (int kind = 0; kind < kKinds; ++kind) {
    if (std::strlen(kNames[kind]) == size && std::strncmp(kNames[kind], fault, size) == 0) {
      fault_kind = kind;
    }
  }
  if (at != nullptr) {
    const auto part = static_cast<std::size_t>(colon - at - 1);
    if (part == 0 || part >= sizeof fault_part) return false;
    std::memcpy(fault_part, at + 1, part);
  }
  char* rest = nullptr;
  fault_number = std::strtol(colon + 1, &rest, 10);
  fault_goes_on = *rest == '+';
  if (is_clock && *rest == ':') {
    clock_shift_s = std::strtol(rest + 1, nullptr, 10);
    fault_goes_on = true;
  }
  return fault_kind >= 0 && fault_number >= 1;
}

void read_settings() {
  const char* program = std::getenv("STEPCAST_FAULT_PROGRAM");
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (program == nullptr || length <= 0) return;
  self[length] = '\0';
  const char* slash = std::strrchr(self, '/');
  if (std::strcmp(slash != nullptr ? slash + 1 : self, program) != 0) return;
  log_file = std::getenv("STEPCAST_FAULT_LOG");
  if (const char* fault = std::getenv("STEPCAST_FAULT")) {
    if (!read_fault(fault)) {
      std::fprintf(stderr, "STEPCAST_FAULT: '%s' is no fault\n", fault);
      std::_Exit(99);
    }
  }
  if (const char* file = std::getenv("STEPCAST_FAULT_STACKS")) {
    stacks_file = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    void* frames[2];
    ::backtrace(frames, 2);  // loads its library now
  }
  ::dl_iterate_phdr(note_object, nullptr);
  armed = true;
}

void tell_counts() {
  const char* file = std::getenv("STEPCAST_FAULT_COUNTS");
  if (!armed || file == nullptr) return;
  armed = false;
  for (int kind = 0; kind < kKinds; ++kind) {
    char line[64];
    std::snprintf(line, sizeof line, "%s %ld\n", kNames[kind], counts[kind].load());
    append_line(file, line);
  }
}

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  {
    const Inside guard;
    read_settings();
  }
  const int code = real_main(argc, argv, environment);
  const Inside guard;
  tell_counts();
  armed = false;
  return code;
}

}  // namespace

#define CALLER __builtin_return_address(0)
#define REAL(name) next<decltype(&::name)>(#name)

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  return next<Start>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}

int open(const char* path, int flags, ...) {
  if (fails(kOpen, CALLER, path)) return refused(reason_of_open(flags), -1);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  if (fails(kOpen, CALLER, path)) return refused(reason_of_open(flags), -1);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int openat(int folder, const char* path, int flags, ...) {
  if (fails(kOpen, CALLER, path)) return refused(reason_of_open(flags), -1);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
int openat64(int folder, const char* path, int flags, ...) {
  if (fails(kOpen, CALLER, path)) return refused(reason_of_open(flags), -1);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
FILE* fopen(const char* path, const char* mode) {
  const int reason = mode[0] == 'r' ? EMFILE : ENOSPC;
  if (fails(kOpen, CALLER, path)) return refused<FILE*>(reason, nullptr);
  return REAL(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  const int reason = mode[0] == 'r' ? EMFILE : ENOSPC;
  if (fails(kOpen, CALLER, path)) return refused<FILE*>(reason, nullptr);
  return REAL(fopen64)(path, mode);
}
DIR* opendir(const char* path) {
  if (fails(kOpen, CALLER, path)) return refused<DIR*>(EMFILE, nullptr);
  return REAL(opendir)(path);
}
DIR* fdopendir(int file) {
  if (fails_on(kOpen, CALLER, file)) return refused<DIR*>(EMFILE, nullptr);
  return REAL(fdopendir)(file);
}
int pipe(int* ends) {
  if (fails(kOpen, CALLER, "pipe")) return refused(EMFILE, -1);
  return REAL(pipe)(ends);
}
int pipe2(int* ends, int flags) {
  if (fails(kOpen, CALLER, "pipe")) return refused(EMFILE, -1);
  return REAL(pipe2)(ends, flags);
}
int mkdir(const char* path, mode_t mode) {
  if (fails(kOpen, CALLER, path)) return refused(ENOSPC, -1);
  return REAL(mkdir)(path, mode);
}
char* mkdtemp(char* path) {
  if (fails(kOpen, CALLER, path)) return refused<char*>(ENOSPC, nullptr);
  return REAL(mkdtemp)(path);
}

ssize_t read(int file, void* data, std::size_t size) {
  if (fails_on(kRead, CALLER, file)) return refused<ssize_t>(EIO, -1);
  return ::syscall(SYS_read, file, data, size);
}
ssize_t readv(int file, const iovec* parts, int count) {
  if (fails_on(kRead, CALLER, file)) return refused<ssize_t>(EIO, -1);
  return REAL(readv)(file, parts, count);
}
std::size_t fread(void* data, std::size_t size, std::size_t count, FILE* file) {
  if (fails_on(kRead, CALLER, ::fileno(file))) return refused<std::size_t>(EIO, 0);
  return REAL(fread)(data, size, count, file);
}

ssize_t write(int file, const void* data, std::size_t size) {
  if (fails_on(kWrite, CALLER, file)) return refused<ssize_t>(ENOSPC, -1);
  if (size > 1 && fails_on(kShort, CALLER, file)) size = 1;
  return ::syscall(SYS_write, file, data, size);
}
ssize_t writev(int file, const iovec* parts, int count) {
  if (fails_on(kWrite, CALLER, file)) return refused<ssize_t>(ENOSPC, -1);
  return REAL(writev)(file, parts, count);
}
std::size_t fwrite(const void* data, std::size_t size, std::size_t count, FILE* file) {
  if (fails_on(kWrite, CALLER, ::fileno(file))) return refused<std::size_t>(ENOSPC, 0);
  return REAL(fwrite)(data, size, count, file);
}
int ftruncate(int file, off_t size) noexcept {
  if (fails_on(kWrite, CALLER, file)) return refused(EIO, -1);
  return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}

int fsync(int file) {
  if (fails_on(kSync, CALLER, file)) return refused(EIO, -1);
  return static_cast<int>(::syscall(SYS_fsync, file));
}
int fdatasync(int file) {
  if (fails_on(kSync, CALLER, file)) return refused(EIO, -1);
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

int rename(const char* from, const char* to) noexcept {
  if (fails(kRename, CALLER, to)) return refused(EIO, -1);
  return REAL(rename)(from, to);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails(kRename, CALLER, to)) return refused(EIO, -1);
  return REAL(linkat)(from_folder, from, to_folder, to, flags);
}

void* malloc(std::size_t size) {
  if (fails(kAllocation, CALLER, "")) return refused<void*>(ENOMEM, nullptr);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  if (fails(kAllocation, CALLER, "")) return refused<void*>(ENOMEM, nullptr);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  if (fails(kAllocation, CALLER, "")) return refused<void*>(ENOMEM, nullptr);
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (fails(kAllocation, CALLER, "")) return refused<void*>(ENOMEM, nullptr);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  if (fails(kAllocation, CALLER, "")) return ENOMEM;
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* settings, void* (*work)(void*),
                   void* data) {
  if (fails(kThread, CALLER, "")) return EAGAIN;
  return REAL(pthread_create)(thread, settings, work, data);
}

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const int code = static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  if (code == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME) &&
      fails(kClock, CALLER, "")) {
    out->tv_sec += clock_shift_s;
  }
  return code;
}

}  // extern "C"
