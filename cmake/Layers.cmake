# One CMake target per folder. A layer may include its own headers and those of the layers it names.
#
#   stepcast_layer(NAME [FOLDER folder] DEPENDS other... [PARTS subfolder...] [LIBRARIES target...])
#                                              library stepcast::NAME from src/NAME or ./NAME; a room
#                                              inside another folder names its FOLDER
#   stepcast_program(FOLDER NAME DEPENDS ...)  executable NAME

function(stepcast_layer name)
  cmake_parse_arguments(ARG "" "FOLDER" "DEPENDS;PARTS;LIBRARIES" ${ARGN})
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
  if(sources)
    set(kind PUBLIC)
    add_library(stepcast_${name} STATIC ${sources})
    # Installed headers name tl::expected, and nothing else of others.
    target_link_libraries(stepcast_${name} PUBLIC
      fmt::fmt tl::expected $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> Threads::Threads)
    target_link_libraries(stepcast_${name} PRIVATE $<BUILD_INTERFACE:stepcast_flags>
      $<BUILD_INTERFACE:Boost::headers> $<BUILD_INTERFACE:Eigen3::Eigen> ${ARG_LIBRARIES})
    stepcast_quick_build(stepcast_${name})
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
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(path src/${folder})
  if(NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    set(path ${folder})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${path}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE stepcast_flags CLI11::CLI11 nlohmann_json::nlohmann_json)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE stepcast_${dependency})
  endforeach()
  stepcast_quick_build(${name})
  target_compile_definitions(${name} PRIVATE STEPCAST_VERSION="${PROJECT_VERSION}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
