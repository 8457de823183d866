// SPDX-License-Identifier: Apache-2.0
// Warp-wide matrix instructions and asynchronous copies (PTX ISA 8.0, sections 9.7.13 and 9.7.8).
// The tests have a second form of this header in plain C++.
//
// With g = lane/4 and t = lane%4, a warp holds, two 16-bit numbers to a register:
//   A (16 x 16): rows g, g+8, g, g+8; columns 2t, 2t+1 of the first two, 2t+8, 2t+9 of the others
//   B (16 x 8):  rows 2t, 2t+1 and 2t+8, 2t+9; column g
//   C (16 x 8), fp32: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
#pragma once

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {

// c += a b.
template <typename T>
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1);
template <>
__device__ inline void multiply_add<Bf16>(float (&c)[4], const std::uint32_t (&a)[4],
                                          std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void multiply_add<Fp16>(float (&c)[4], const std::uint32_t (&a)[4],
                                          std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

// Four 8 x 8 matrices of 16-bit numbers; lane 8i + r brings the address of row r of matrix i, 16
// bytes. Register i of a lane then holds (g, 2t), (g, 2t+1) of matrix i.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
// ... (2t, g), (2t+1, g) of matrix i.
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

// 16 bytes from global to shared memory, or zeros; there after wait_for_copies and a barrier.
__device__ inline void start_copy(void* shared, const void* global, bool zeros) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(zeros ? 0 : 16)
               : "memory");
}
// Ends a group of this thread's copies.
__device__ inline void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all but the last kLeft groups of this thread are there.
template <int kLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

}  // namespace stepcast::cuda
