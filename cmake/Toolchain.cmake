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
if(STEPCAST_FUZZ)
  # Tells libFuzzer which branches an input takes.
  target_compile_options(stepcast_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# With STEPCAST_QUICK_BUILD, files of a folder are compiled together, so that they parse the large headers once:
# a dozen of a library's, which still keeps a change of one file quick, and six of a test's, which are not
# optimised. The presets "clang", "debug" and "bench" go without, so that each file is known to include what it
# uses.
function(stepcast_quick_build target)
  if(STEPCAST_QUICK_BUILD)
    set(at_once 12)
    if(target MATCHES "^test_")
      set(at_once 6)
      target_compile_options(${target} PRIVATE -O0)
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${at_once})
  endif()
endfunction()
