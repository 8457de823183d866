# With STEPCAST_QUICK_BUILD, files of a folder are compiled together, so that they parse the large headers once:
# a dozen of a library's, which still keeps a change of one file quick, and six of a test's, which are not
# optimised. The presets "clang", "debug" and "bench" go without, so that each file is known to include what it
# uses.
#
# The files that include them are written here, and not by CMake's UNITY_BUILD, because these name them below the
# project's folder: their text is the same in every clone, and a compiler's cache knows it again.

# Sets `out` to the files to compile for `sources`: themselves, or such that include `at_once` of them each. Files
# with the property SKIP_UNITY_BUILD_INCLUSION, and those of other languages, stay by themselves.
function(stepcast_batches out target at_once)
  if(NOT STEPCAST_QUICK_BUILD)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(batched "")
  set(files "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    get_source_file_property(is_alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${source} is_ours)
    if(is_alone OR NOT is_ours OR NOT source MATCHES "[.]cpp$")
      list(APPEND files ${source})
    else()
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND batched ${source})
    endif()
  endforeach()
  set(number 0)
  while(batched)
    list(SUBLIST batched 0 ${at_once} batch)
    list(REMOVE_ITEM batched ${batch})
    set(text "")
    foreach(source IN LISTS batch)
      string(APPEND text "#include \"${source}\"  // NOLINT\n")
    endforeach()
    math(EXPR number "${number} + 1")
    set(file ${PROJECT_BINARY_DIR}/batches/${target}_${number}.cpp)
    set(before "")
    if(EXISTS ${file})
      file(READ ${file} before)
    endif()
    if(NOT before STREQUAL text)
      file(WRITE ${file} "${text}")
    endif()
    list(APPEND files ${file})
  endwhile()
  set(${out} ${files} PARENT_SCOPE)
endfunction()
