# One CMake target per folder. A layer may include its own headers and those of the layers it names.
#
#   stepcast_layer(NAME [COLD] [FOLDER folder] DEPENDS other... [PARTS subfolder...] [LIBRARIES target...])
#                                              library stepcast::NAME from src/NAME or ./NAME; a room
#                                              inside another folder names its FOLDER
#   stepcast_program(FOLDER NAME [COLD] DEPENDS ...)  executable NAME
#
# COLD code runs once for a command: reading options, writing pages. It is compiled at -O1 in a release, which
# takes two thirds of the time and costs no forecast a percent of its instructions.

function(stepcast_optimise_less target)
  if(NOT EMSCRIPTEN)
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  endif()
endfunction()

function(stepcast_layer name)
  cmake_parse_arguments(ARG "COLD" "FOLDER" "DEPENDS;PARTS;LIBRARIES" ${ARGN})
  if(name IN_LIST STEPCAST_LAYERS_LEFT_OUT)
    return()
  endif()
  list(REMOVE_ITEM ARG_DEPENDS ${STEPCAST_LAYERS_LEFT_OUT})
  set(place ${name})
  if(ARG_FOLDER)
    set(place ${ARG_FOLDER})
  endif()
  set(folder src/${place})
  if(NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
    set(folder ${place})
  endif()
  set(patterns ${folder}/*.cpp)
  foreach(part IN LISTS ARG_PARTS)
    list(APPEND patterns ${folder}/${part}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(STEPCAST_FILES_LEFT_OUT)
    list(FILTER sources EXCLUDE REGEX "/(${STEPCAST_FILES_LEFT_OUT})[.]cpp$")
  endif()
  if(sources)
    set(kind PUBLIC)
    stepcast_batches(sources stepcast_${name} 12 ${sources})
    add_library(stepcast_${name} STATIC ${sources})
    # Installed headers name tl::expected, and nothing else of others.
    target_link_libraries(stepcast_${name} PUBLIC
      fmt::fmt tl::expected $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> Threads::Threads)
    target_link_libraries(stepcast_${name} PRIVATE $<BUILD_INTERFACE:stepcast_flags>
      $<BUILD_INTERFACE:Boost::headers> $<BUILD_INTERFACE:Eigen3::Eigen> ${ARG_LIBRARIES})
    if(ARG_COLD)
      stepcast_optimise_less(stepcast_${name})
    endif()
  else()
    set(kind INTERFACE)
    add_library(stepcast_${name} INTERFACE)
  endif()
  set_target_properties(stepcast_${name} PROPERTIES EXPORT_NAME ${name} PLACE ${place})
  add_library(stepcast::${name} ALIAS stepcast_${name})
  target_include_directories(stepcast_${name} ${kind}
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/stepcast>)
  target_compile_features(stepcast_${name} ${kind} cxx_std_20)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(stepcast_${name} ${kind} stepcast_${dependency})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY STEPCAST_LAYERS ${name})
endfunction()

function(stepcast_program folder name)
  cmake_parse_arguments(ARG "COLD" "" "DEPENDS" ${ARGN})
  set(path src/${folder})
  if(NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    set(path ${folder})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${path}/*.cpp)
  if(NOT sources)
    return()
  endif()
  stepcast_batches(sources ${name} 12 ${sources})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE stepcast_flags CLI11::CLI11 nlohmann_json::nlohmann_json)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE stepcast_${dependency})
  endforeach()
  target_compile_definitions(${name} PRIVATE STEPCAST_VERSION="${PROJECT_VERSION}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  if(ARG_COLD)
    stepcast_optimise_less(${name})
  endif()
endfunction()
