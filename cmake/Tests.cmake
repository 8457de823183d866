# Tests of GoogleTest. Each runs in one configuration, where it finds most:
#
#   STEPCAST_UNIT_TESTS      quick tests of layers, *_test.cpp: the preset "asan" runs them with sanitizers
#   STEPCAST_PROGRAM_TESTS   those that start programs, train for real, or take long (*_long_test.cpp): the
#                            preset "release" runs them
#
# The presets "debug" and "clang" run both. A test that a preset does not run can still be built by its name.
option(STEPCAST_UNIT_TESTS "Build and run the quick tests of layers" ON)
option(STEPCAST_PROGRAM_TESTS "Build and run tests that start programs or take long" ON)

# Where sources and programs lie: all that differs between the objects of two clones.
add_library(test_places STATIC ${PROJECT_SOURCE_DIR}/tests/places.cpp)
target_link_libraries(test_places PRIVATE stepcast_flags)
target_include_directories(test_places PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(test_places PRIVATE STEPCAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
  STEPCAST_PROGRAM_DIR="${PROJECT_BINARY_DIR}")

# An executable of cases, and a test for each of its SHARDS: processes that share the cases. What a case took and
# whether it was skipped stands in results/NAME.SHARD.xml.
#
#   stepcast_test(NAME UNIT|PROGRAM SOURCES file... [LIBRARIES target...] [LABELS label...] [SHARDS count]
#                 [ALONE] [LONG])
#
# The executable is test_NAME. ALONE: its cases start processes of their own, which take all cores.
function(stepcast_test name)
  cmake_parse_arguments(ARG "UNIT;PROGRAM;ALONE;LONG" "SHARDS" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  set(is_run ${STEPCAST_PROGRAM_TESTS})
  if(ARG_UNIT)
    set(is_run ${STEPCAST_UNIT_TESTS})
  endif()
  stepcast_batches(files test_${name} 6 ${ARG_SOURCES})
  add_executable(test_${name} ${files})
  target_link_libraries(test_${name} PRIVATE stepcast_flags test_places ${ARG_LIBRARIES} GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(STEPCAST_QUICK_BUILD)
    target_compile_options(test_${name} PRIVATE -O0)
  endif()
  if(NOT is_run)
    set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS ${name})
  endif()
  if(ARG_LONG)
    list(APPEND ARG_LABELS long)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${name}.${shard})
    add_test(NAME ${test} COMMAND test_${name} --gtest_brief=1
      --gtest_output=xml:${PROJECT_BINARY_DIR}/results/${test}.xml)
    set_tests_properties(${test} PROPERTIES TIMEOUT 900 LABELS "${ARG_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
    if(ARG_ALONE)
      set_tests_properties(${test} PROPERTIES PROCESSORS 2)
    endif()
    if(ARG_LONG OR ARG_ALONE)
      set_tests_properties(${test} PROPERTIES COST 100)  # so that none of them is the last
    endif()
  endforeach()
endfunction()
