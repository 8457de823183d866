# A web build (preset "web"): forecasts and searches as WebAssembly, by emscripten. Debian's headers serve it,
# but none of its libraries is for this target: layers that read YAML, TOML or gzip and those of real runs are
# left out.
set(STEPCAST_LAYERS_LEFT_OUT
  logs traces graphs recipes calibrate kernels launch comm execute measure diagnose acceptance replay)
set(STEPCAST_FILES_LEFT_OUT
  "diagnosis_[a-z]+|replay_(json|table|trace)|log_report|acceptance_report|launch_files")

# No more of the system's headers than these may be seen: the others are of another target.
set(headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(header fmt nlohmann boost tl CLI eigen3/Eigen)
  get_filename_component(name ${header} NAME)
  file(CREATE_LINK /usr/include/${header} ${headers}/${name} SYMBOLIC)
endforeach()
add_library(stepcast_web_headers INTERFACE)
target_include_directories(stepcast_web_headers SYSTEM INTERFACE ${headers})
target_compile_definitions(stepcast_web_headers INTERFACE FMT_HEADER_ONLY)
foreach(library fmt::fmt tl::expected nlohmann_json::nlohmann_json CLI11::CLI11 Boost::headers Eigen3::Eigen)
  add_library(${library} ALIAS stepcast_web_headers)
endforeach()
add_library(stepcast_no_threads INTERFACE)
add_library(Threads::Threads ALIAS stepcast_no_threads)

add_compile_options(-fwasm-exceptions "SHELL:-include ${CMAKE_CURRENT_SOURCE_DIR}/bindings/web/stand_ins.h")
add_link_options(-fwasm-exceptions)
# emscripten's own call of clang goes through the cache.
set(CMAKE_CXX_COMPILER_LAUNCHER "")
option(STEPCAST_QUICK_WEB "Optimise less, for tests" OFF)
if(STEPCAST_QUICK_WEB)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1")
else()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2")
endif()
