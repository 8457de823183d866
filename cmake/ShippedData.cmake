# Writes the data that ships as C++ for the layer `shipped`, by a program that is built first, for the machine
# that builds (cmake/pack_data.cpp).
set(shipped_files "")
set(shipped_list "")
function(stepcast_ship folder as)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/${folder}
    ${folder}/*.json ${folder}/*.yml)
  foreach(file IN LISTS files)
    list(APPEND shipped_files ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file})
    string(APPEND shipped_list "${as}/${file}\t${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file}\n")
  endforeach()
  set(shipped_files "${shipped_files}" PARENT_SCOPE)
  set(shipped_list "${shipped_list}" PARENT_SCOPE)
endfunction()

stepcast_ship(examples/github-actions examples/github-actions)
stepcast_ship(models models)
stepcast_ship(prices prices)
stepcast_ship(calibrate/profiles profiles)
stepcast_ship(suites suites)
stepcast_ship(topologies topologies)
set(shipped_list_file ${CMAKE_CURRENT_BINARY_DIR}/shipped_files.txt)
file(CONFIGURE OUTPUT ${shipped_list_file} CONTENT "${shipped_list}" @ONLY)

set(pack_source ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pack_data.cpp)
if(EMSCRIPTEN)
  find_program(STEPCAST_HOST_CXX NAMES c++ g++ clang++ REQUIRED)
  set(pack ${CMAKE_CURRENT_BINARY_DIR}/stepcast_pack)
  add_custom_command(OUTPUT ${pack}
    COMMAND ${STEPCAST_HOST_CXX} -std=c++20 -I${CMAKE_CURRENT_SOURCE_DIR}/src ${pack_source} -o ${pack}
    DEPENDS ${pack_source} ${CMAKE_CURRENT_SOURCE_DIR}/src/core/packed_json.h VERBATIM)
else()
  set(pack stepcast_pack)
  add_executable(stepcast_pack ${pack_source})
  target_include_directories(stepcast_pack PRIVATE src)
  target_compile_features(stepcast_pack PRIVATE cxx_std_20)
  target_link_libraries(stepcast_pack PRIVATE stepcast_flags nlohmann_json::nlohmann_json)
endif()
set(shipped_source ${CMAKE_CURRENT_BINARY_DIR}/shipped_files.cpp)
add_custom_command(OUTPUT ${shipped_source} COMMAND ${pack} ${shipped_list_file} ${shipped_source}
  DEPENDS ${pack} ${shipped_list_file} ${shipped_files} COMMENT "Packing the data that ships" VERBATIM)
target_sources(stepcast_shipped PRIVATE ${shipped_source})
# The bytes are longer than the 65,536 letters that every compiler has to take; ours take them.
set_source_files_properties(${shipped_source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_OPTIONS -Wno-overlength-strings)
