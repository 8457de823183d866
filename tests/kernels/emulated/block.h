// SPDX-License-Identifier: Apache-2.0
// A block of threads on the CPU: every thread is a fiber that runs until it waits for others, at a
// barrier or in an operation of its whole warp. Each warp runs as far as it comes without the
// others, in orders that change (seeded), so that a missing barrier shows. Not for speed: one core,
// one block at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>

namespace stepcast::emulated {

struct Index {
  unsigned x = 1, y = 1, z = 1;
  Index() = default;
  Index(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

std::mutex& device_mutex();  // of threads that each launch kernels

// Runs `thread` once for each thread of a block. Throws std::logic_error when threads wait for each
// other for ever, and what a thread throws.
void run_block(unsigned threads, std::size_t shared_bytes, const std::function<void()>& thread);

unsigned char* shared_memory();  // of the block that runs; NaNs at its start

void wait_for_block();
// Lane i of the warp brings operands[i]; the last one to come does the work of all.
using WarpWork = void (*)(void* const* operands);
void with_warp(void* operands, WarpWork work);

// Asynchronous copies of 16 bytes: done, at the latest moment that is allowed, by the wait.
void start_copy(void* to, const void* from, bool zeros);
void end_copy_group();
void wait_for_copies(std::size_t left);

}  // namespace stepcast::emulated

extern stepcast::emulated::Index threadIdx, blockIdx, blockDim, gridDim;
