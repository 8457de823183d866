# `cmake --install` puts in place:
#   bin/stepcast                the program, which finds its data beside itself
#   share/stepcast/             models, topologies, profiles, suites, prices
#   include/stepcast/, lib/     the public headers, and static libraries
#   lib/cmake/stepcast/         find_package(stepcast CONFIG) -> stepcast::api
include(CMakePackageConfigHelpers)

set(data_folder ${CMAKE_INSTALL_DATADIR}/stepcast)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast)

if(TARGET stepcast)
  install(TARGETS stepcast stepcast-rank RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(folder models topologies suites prices)
  install(DIRECTORY ${folder}/ DESTINATION ${data_folder}/${folder} FILES_MATCHING PATTERN *.json)
endforeach()
install(DIRECTORY calibrate/profiles/ DESTINATION ${data_folder}/profiles
  FILES_MATCHING PATTERN *.json)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The headers of src/stepcast are the library's public face; they include these of core and sim, and
# no other.
set(public_headers core/error.h core/id.h core/quantity.h core/result.h sim/engine.h sim/time.h
  sim/workload.h)
file(GLOB faces CONFIGURE_DEPENDS src/stepcast/*.h)
install(FILES ${faces} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast)
foreach(header IN LISTS public_headers)
  set(path src/${header})
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    set(path ${header})
  endif()
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${path} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast/${folder})
endforeach()
get_property(layers GLOBAL PROPERTY STEPCAST_LAYERS)
foreach(layer IN LISTS layers)
  install(TARGETS stepcast_${layer} EXPORT stepcast ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(EXPORT stepcast NAMESPACE stepcast:: DESTINATION ${package_folder}
  FILE stepcastTargets.cmake)

configure_package_config_file(cmake/stepcastConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS data_folder)
# Before 1.0 a minor version may change an interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/stepcastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfigVersion.cmake DESTINATION ${package_folder})

# `cpack --config build/release/CPackConfig.cmake` makes an archive and a Debian package.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME stepcast)
set(CPACK_PACKAGE_CONTACT "stepcast maintainers <maintainers@stepcast.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# What the headers and the CMake package need; the program alone needs only shared libraries.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libexpected-dev, libtomlplusplus-dev, libyaml-cpp-dev")
find_program(STEPCAST_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(STEPCAST_DPKG_SHLIBDEPS)
if(STEPCAST_DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
