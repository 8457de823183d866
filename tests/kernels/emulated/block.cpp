// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulated/block.h"

#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define STEPCAST_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STEPCAST_ADDRESS_SANITIZER
#endif
#endif
#ifdef STEPCAST_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

stepcast::emulated::Index threadIdx, blockIdx, blockDim, gridDim;

namespace stepcast::emulated {
namespace {

constexpr std::size_t kStack = 256 * 1024;
constexpr unsigned kWarp = 32;

struct Copy {
  void* to;
  const void* from;
  bool zeros;
};

// Tells the address sanitizer which stack comes next. Does nothing without it.
struct StackChange {
  void* fake = nullptr;
  void leave([[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t size) {
#ifdef STEPCAST_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&fake, bottom, size);
#endif
  }
  void arrive([[maybe_unused]] const void** bottom, [[maybe_unused]] std::size_t* size) {
#ifdef STEPCAST_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
  }
};

enum class State { kRuns, kWaits, kEnded };

// A place on a stack. The compiler's own setjmp: that of the library makes the address sanitizer
// look at the whole stack every time, and contexts take system calls.
using Place = void* [5];
// Neither inlined nor instrumented: no frame is left for good.
#define STEPCAST_SWITCH __attribute__((noinline, no_sanitize("address")))
STEPCAST_SWITCH void jump(Place& to) { __builtin_longjmp(to, 1); }

// A stack is entered once by its context, and from then on by jumps.
struct Fiber {
  ucontext_t entry;
  Place place;
  bool entered = false;
  std::unique_ptr<unsigned char[]> stack = std::make_unique<unsigned char[]>(kStack);
  StackChange change;
  State state = State::kRuns;
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open_group;
};

struct Warp {
  void* operands[kWarp];
  unsigned arrived = 0;
  WarpWork work = nullptr;
};

struct Block {
  const std::function<void()>* thread = nullptr;
  unsigned count = 0, live = 0, at_barrier = 0, current = 0;
  std::vector<Warp> warps;
  std::vector<unsigned char> shared;
  std::exception_ptr error;
  unsigned random = 1;
};

Block block;
std::deque<Fiber> fibers;  // kept from block to block, and never moved: they hold on to themselves
Place scheduler;
const void* scheduler_stack = nullptr;
std::size_t scheduler_stack_size = 0;

STEPCAST_SWITCH void back_to_scheduler() {
  Fiber& fiber = fibers[block.current];
  fiber.change.leave(scheduler_stack, scheduler_stack_size);
  if (__builtin_setjmp(fiber.place) == 0) jump(scheduler);
  fiber.change.arrive(&scheduler_stack, &scheduler_stack_size);
}

void wait() {
  fibers[block.current].state = State::kWaits;
  back_to_scheduler();
  if (block.error) std::rethrow_exception(block.error);  // unwinds this thread too
}

void release_barrier() {
  block.at_barrier = 0;
  for (unsigned i = 0; i < block.count; ++i) {
    if (fibers[i].state == State::kWaits) fibers[i].state = State::kRuns;
  }
}

// One thread after the other, for ever.
void fiber_main() {
  fibers[block.current].change.arrive(&scheduler_stack, &scheduler_stack_size);
  for (;;) {
    try {
      (*block.thread)();
    } catch (...) {
      if (!block.error) block.error = std::current_exception();
    }
    fibers[block.current].state = State::kEnded;
    --block.live;
    if (block.live > 0 && block.at_barrier == block.live) release_barrier();
    back_to_scheduler();
  }
}

void start(Fiber& fiber) {
  fiber.state = State::kRuns;
  fiber.groups.clear();
  fiber.open_group.clear();
  if (fiber.entered) return;
  getcontext(&fiber.entry);
  fiber.entry.uc_stack.ss_sp = fiber.stack.get();
  fiber.entry.uc_stack.ss_size = kStack;
  fiber.entry.uc_link = nullptr;
  makecontext(&fiber.entry, fiber_main, 0);
}

STEPCAST_SWITCH void resume(unsigned index) {
  Fiber& fiber = fibers[index];
  block.current = index;
  threadIdx = {index, 0, 0};
  StackChange own;
  own.leave(fiber.stack.get(), kStack);
  if (__builtin_setjmp(scheduler) == 0) {
    if (fiber.entered) jump(fiber.place);
    fiber.entered = true;
    setcontext(&fiber.entry);
  }
  own.arrive(nullptr, nullptr);
}

bool next_bit() {
  block.random = block.random * 1664525 + 1013904223;
  return (block.random >> 16 & 1) != 0;
}

// Runs the threads from `first` on in one order or the other. Returns whether any ran.
bool run_warp(unsigned first) {
  const bool backwards = next_bit();
  bool any = false;
  for (unsigned i = 0; i < kWarp; ++i) {
    const unsigned index = first + (backwards ? kWarp - 1 - i : i);
    if (fibers[index].state != State::kRuns) continue;
    any = true;
    resume(index);
  }
  return any;
}

// Runs warp by warp, in one order or the other, each as far as it comes without the others. Where a
// barrier is missing, warps are then a whole phase apart. Returns whether any thread ran.
bool pass() {
  const bool backwards = next_bit();
  const unsigned warps = block.count / kWarp;
  bool any = false;
  for (unsigned i = 0; i < warps; ++i) {
    const unsigned warp = backwards ? warps - 1 - i : i;
    while (run_warp(warp * kWarp)) any = true;
  }
  return any;
}

}  // namespace

std::mutex& device_mutex() {
  static std::mutex mutex;
  return mutex;
}

void run_block(unsigned threads, std::size_t shared_bytes, const std::function<void()>& thread) {
  if (threads == 0 || threads % kWarp != 0) throw std::logic_error("blocks are of whole warps");
  if (fibers.size() < threads) fibers.resize(threads);
  block.thread = &thread;
  block.count = block.live = threads;
  block.at_barrier = 0;
  block.warps.assign(threads / kWarp, {});
  block.shared.assign(shared_bytes, 0xff);
  block.error = nullptr;
  for (unsigned i = 0; i < threads; ++i) start(fibers[i]);
  while (block.live > 0) {
    if (pass()) continue;
    if (!block.error) {
      block.error = std::make_exception_ptr(
          std::logic_error(std::to_string(block.live) + " threads wait for each other for ever"));
    }
    release_barrier();  // they end with the error
  }
  if (block.error) std::rethrow_exception(block.error);
}

unsigned char* shared_memory() { return block.shared.data(); }

void wait_for_block() {
  if (++block.at_barrier == block.live) {
    release_barrier();
    return;
  }
  wait();
}

void with_warp(void* operands, WarpWork work) {
  const unsigned first = block.current / kWarp * kWarp;
  Warp& warp = block.warps[block.current / kWarp];
  if (warp.arrived > 0 && warp.work != work) {
    throw std::logic_error("lanes of a warp meet in different operations");
  }
  warp.work = work;
  warp.operands[block.current - first] = operands;
  if (++warp.arrived < kWarp) return wait();
  warp.arrived = 0;
  work(warp.operands);
  for (unsigned lane = first; lane < first + kWarp; ++lane) fibers[lane].state = State::kRuns;
}

void start_copy(void* to, const void* from, bool zeros) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 ||
      (!zeros && reinterpret_cast<std::uintptr_t>(from) % 16 != 0)) {
    throw std::logic_error("a copy that is not aligned to 16 bytes");
  }
  std::memset(to, 0xff, 16);  // nothing to be read yet
  fibers[block.current].open_group.push_back({to, from, zeros});
}

void end_copy_group() {
  Fiber& fiber = fibers[block.current];
  fiber.groups.push_back(std::move(fiber.open_group));
  fiber.open_group.clear();
}

void wait_for_copies(std::size_t left) {
  Fiber& fiber = fibers[block.current];
  for (; fiber.groups.size() > left; fiber.groups.pop_front()) {
    for (const Copy& copy : fiber.groups.front()) {
      copy.zeros ? std::memset(copy.to, 0, 16) : std::memcpy(copy.to, copy.from, 16);
    }
  }
}

}  // namespace stepcast::emulated
