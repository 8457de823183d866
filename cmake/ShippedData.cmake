# Writes the data that ships as C++ for the layer `shipped`: a table of paths and texts, sorted by
# path. Texts lose their line breaks and indentation, which stand outside of strings in JSON.
set(shipped_table "")
function(stepcast_ship folder as)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/${folder}
    ${folder}/*.json)
  foreach(file IN LISTS files)
    set(path ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} text)
    string(REGEX REPLACE "\n *" "" text "${text}")
    string(APPEND shipped_table "      file(\"shipped:/${as}/${file}\",\n           R\"json(${text})json\"),\n")
  endforeach()
  set(shipped_table "${shipped_table}" PARENT_SCOPE)
endfunction()

# A text that is no JSON, as it stands.
function(stepcast_ship_text file)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  string(APPEND shipped_table "      file(\"shipped:/${file}\",\n           R\"text(${text})text\"),\n")
  set(shipped_table "${shipped_table}" PARENT_SCOPE)
endfunction()

# In the order of their paths.
stepcast_ship_text(examples/github-actions/stepcast-gate.yml)
stepcast_ship(models models)
stepcast_ship(prices prices)
stepcast_ship(calibrate/profiles profiles)
stepcast_ship(suites suites)
stepcast_ship(topologies topologies)
set(shipped_source "// Made by cmake/ShippedData.cmake.
#include \"core/carried_files.h\"

namespace stepcast {
namespace {

// The lengths come from the arrays: nobody counts megabytes of letters.
template <std::size_t path_size, std::size_t size>
constexpr CarriedFile file(const char (&path)[path_size], const char (&text)[size]) {
  return {{path, path_size - 1}, {text, size - 1}};
}

}  // namespace

std::span<const CarriedFile> shipped_files();
std::span<const CarriedFile> shipped_files() {
  static constexpr CarriedFile kFiles[] = {
${shipped_table}  };
  return kFiles;
}

}  // namespace stepcast
")
set(shipped_file ${CMAKE_CURRENT_BINARY_DIR}/shipped_files.cpp)
if(EXISTS ${shipped_file})
  file(READ ${shipped_file} shipped_before)
endif()
if(NOT shipped_before STREQUAL shipped_source)
  file(WRITE ${shipped_file} "${shipped_source}")
endif()
target_sources(stepcast_shipped PRIVATE ${shipped_file})
# A text of data is longer than the 65,536 letters that every compiler has to take; ours take it.
set_source_files_properties(${shipped_file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_OPTIONS -Wno-overlength-strings)
