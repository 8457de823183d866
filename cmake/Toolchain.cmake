# Compiler settings that every target of the project shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(STEPCAST_CCACHE ccache)
if(STEPCAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STEPCAST_CCACHE})
  if(STEPCAST_QUICK_BUILD)  # what ccache asks for before it keeps what a precompiled header is part of
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${STEPCAST_CCACHE})
  endif()
endif()

add_library(stepcast_flags INTERFACE)
# nvcc has flags of its own: see Cuda.cmake.
target_compile_options(stepcast_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  # Same bytes out everywhere: no fused multiply-add that one compiler takes and another does not.
  -ffp-contract=off
  # False alarms of GCC 12 about "text" + std::string (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${STEPCAST_WERROR}>:-Werror>>)
if(STEPCAST_SANITIZE)
  target_compile_options(stepcast_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(stepcast_flags INTERFACE -fsanitize=address,undefined)
endif()

# With STEPCAST_QUICK_BUILD, the large headers are parsed once, and what never runs long (programs,
# tests) is not optimised. TESTS does so for tests alone. Other builds go without, so that each file is
# known to include what it uses.
set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON)
set(STEPCAST_LARGE_HEADERS <algorithm> <chrono> <filesystem> <functional> <map> <memory> <optional> <span>
  <sstream> <string> <string_view> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)

# stepcast_quick_build(TARGET DONOR [HEADER...])   DONOR parses the headers for all targets that name it
function(stepcast_quick_build target donor)
  if(NOT STEPCAST_QUICK_BUILD OR (STEPCAST_QUICK_BUILD STREQUAL "TESTS" AND NOT target MATCHES "^test_"))
    return()
  endif()
  get_target_property(type ${target} TYPE)
  target_compile_options(${target} PRIVATE
    $<$<STREQUAL:${type},EXECUTABLE>:-O0> "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  if(target STREQUAL donor)
    target_precompile_headers(${target} PRIVATE ${STEPCAST_LARGE_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${donor})
  endif()
endfunction()
