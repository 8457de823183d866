# Compiler settings that every target of the project shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The Python module is a shared library of the libraries that the programs link. Nobody replaces a function of
# theirs, so that calls stay direct.
if(NOT EMSCRIPTEN AND NOT STEPCAST_SANITIZE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
  endif()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# A clone in another folder compiles the same: the cache sees paths from the project's folder.
find_program(STEPCAST_CCACHE ccache)
if(STEPCAST_CCACHE)
  set(STEPCAST_CCACHE_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${STEPCAST_CCACHE})
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${STEPCAST_CCACHE_LAUNCHER})
  endif()
endif()

# Dozens of programs with the same libraries: a quick linker halves what it takes to link them.
if(NOT EMSCRIPTEN)
  find_program(STEPCAST_LINKER NAMES mold ld.lld)
  mark_as_advanced(STEPCAST_LINKER)
  if(STEPCAST_LINKER MATCHES "(mold|lld)$")
    add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=${CMAKE_MATCH_1}>)
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
  # Every forecast checks that causes come before effects (predict/check_replay.h).
  target_compile_definitions(stepcast_flags INTERFACE STEPCAST_CHECK_CAUSES)
endif()
if(STEPCAST_FUZZ)
  # Tells libFuzzer which branches an input takes.
  target_compile_options(stepcast_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
