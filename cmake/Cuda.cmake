# Kernels for GPUs, where nvcc is: a library of its own, so that programs without it start on machines
# that have no CUDA.
#
#   STEPCAST_CUDA           AUTO (where nvcc is found; not with STEPCAST_SANITIZE), ON, OFF
#   stepcast_kernels_cuda   src/kernels/cuda; needs no driver to build, link or start
#   stepcast_execute_cuda   src/execute/cuda: programs on a GPU
#   stepcast_measure_cuda   calibrate/measure/gpu: times kernels and collectives on a GPU
#   stepcast-gpu            src/worker/gpu: the program that runs and measures there
set(STEPCAST_CUDA AUTO CACHE STRING "Build the CUDA kernels: AUTO, ON or OFF")
set_property(CACHE STEPCAST_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT STEPCAST_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "STEPCAST_CUDA is AUTO, ON or OFF, not ${STEPCAST_CUDA}")
endif()

set(build_cuda FALSE)
if(STEPCAST_CUDA STREQUAL "ON" OR (STEPCAST_CUDA STREQUAL "AUTO" AND NOT STEPCAST_SANITIZE))
  find_program(STEPCAST_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(STEPCAST_NVCC)
  find_package(CUDAToolkit 12.0 QUIET)
  if(STEPCAST_NVCC AND CUDAToolkit_FOUND AND TARGET CUDA::cublasLt AND TARGET CUDA::cudart_static)
    set(build_cuda TRUE)
  elseif(STEPCAST_CUDA STREQUAL "ON")
    message(FATAL_ERROR "STEPCAST_CUDA is ON, but there is no nvcc with cuBLASLt (CUDA 12 or later)")
  endif()
endif()
if(NOT build_cuda)
  message(STATUS "The CUDA kernels are not built")
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${STEPCAST_NVCC})
endif()
# Machine code for Ampere (which Ada runs too) and Hopper; later chips compile what is for Hopper.
# CMake itself reads the variable of the environment the first time alone.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  if(DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS})
  else()
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
endif()
if(STEPCAST_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${STEPCAST_CCACHE_LAUNCHER})
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 knows it of other compilers only
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# cuDNN's library is looked for when it is first needed: only headers must be here.
find_path(STEPCAST_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STEPCAST_CUDNN_INCLUDE)
file(GLOB sources CONFIGURE_DEPENDS src/kernels/cuda/*.cu src/kernels/cuda/*.cpp)
if(STEPCAST_CUDNN_INCLUDE)
  file(GLOB cudnn CONFIGURE_DEPENDS src/kernels/cuda/cudnn/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/no_cudnn[.]cpp$")
else()
  message(STATUS "No headers of cuDNN: attention on GPUs is by the own kernels")
endif()
add_library(stepcast_kernels_cuda STATIC ${sources} ${cudnn})
if(STEPCAST_CUDNN_INCLUDE)
  target_include_directories(stepcast_kernels_cuda SYSTEM PRIVATE ${STEPCAST_CUDNN_INCLUDE})
endif()
target_compile_options(stepcast_kernels_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
  -Xcompiler=-Wall,-Wextra $<$<BOOL:${STEPCAST_WERROR}>:-Xcompiler=-Werror --Werror=all-warnings>>)
target_link_libraries(stepcast_kernels_cuda PUBLIC stepcast_kernels
  PRIVATE stepcast_flags CUDA::cudart_static CUDA::cublasLt)

file(GLOB sources CONFIGURE_DEPENDS src/execute/cuda/*.cpp)
stepcast_batches(sources stepcast_execute_cuda 12 ${sources})
add_library(stepcast_execute_cuda STATIC ${sources})
target_link_libraries(stepcast_execute_cuda PUBLIC stepcast_execute stepcast_kernels_cuda
  CUDA::cudart_static PRIVATE stepcast_flags)

file(GLOB sources CONFIGURE_DEPENDS calibrate/measure/gpu/*.cpp)
stepcast_batches(sources stepcast_measure_cuda 12 ${sources})
add_library(stepcast_measure_cuda STATIC ${sources})
target_link_libraries(stepcast_measure_cuda PUBLIC stepcast_measure stepcast_execute_cuda
  PRIVATE stepcast_flags ${CMAKE_DL_LIBS})
if(TARGET stepcast_nccl)
  target_link_libraries(stepcast_measure_cuda PRIVATE stepcast_nccl)
  target_compile_definitions(stepcast_measure_cuda PRIVATE STEPCAST_HAS_NCCL)
endif()

# The program that runs on a GPU. Only it needs cuBLASLt's library to start.
stepcast_program(worker/gpu stepcast-gpu DEPENDS measure shipped)
target_sources(stepcast-gpu PRIVATE src/worker/operation_times.cpp src/worker/run_job.cpp)
target_link_libraries(stepcast-gpu PRIVATE stepcast_measure_cuda stepcast_validate)
install(TARGETS stepcast-gpu RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
