# `cmake --install` puts in place, by component:
#   program  bin/stepcast, which carries its data; its manual page and completions of shells
#   bundled  lib/stepcast/: the shared libraries that the program needs beside the C library's
#   ranks    bin/stepcast-rank, which `validate` and `calibrate` start under MPI
#   devel    include/stepcast/, lib/ and lib/cmake/stepcast: find_package(stepcast CONFIG) ->
#            stepcast::api; share/stepcast/: models, topologies, profiles, suites, prices as files
include(CMakePackageConfigHelpers)

set(data_folder ${CMAKE_INSTALL_DATADIR}/stepcast)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast)
set(bundle_folder ${CMAKE_INSTALL_LIBDIR}/stepcast)

if(TARGET stepcast)
  set_target_properties(stepcast PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${bundle_folder}")
  install(TARGETS stepcast RUNTIME_DEPENDENCY_SET program_libraries
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(RUNTIME_DEPENDENCY_SET program_libraries
    PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread)\\.so" "^ld-linux"
    POST_EXCLUDE_REGEXES "/lib(c|m|dl|rt|pthread)\\.so" "/ld-linux"
    LIBRARY DESTINATION ${bundle_folder} COMPONENT bundled)
  install(TARGETS stepcast-rank RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ranks)

  # The program itself prints them.
  set(words ${CMAKE_CURRENT_BINARY_DIR}/words)
  file(MAKE_DIRECTORY ${words})
  add_custom_command(
    OUTPUT ${words}/stepcast.1 ${words}/stepcast.bash ${words}/_stepcast ${words}/stepcast.fish
    DEPENDS stepcast
    COMMAND stepcast man > ${words}/stepcast.1
    COMMAND stepcast completion bash > ${words}/stepcast.bash
    COMMAND stepcast completion zsh > ${words}/_stepcast
    COMMAND stepcast completion fish > ${words}/stepcast.fish)
  add_custom_target(stepcast_words ALL DEPENDS ${words}/stepcast.1)
  install(FILES ${words}/stepcast.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(FILES ${words}/stepcast.bash RENAME stepcast
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
  install(FILES ${words}/_stepcast DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    COMPONENT program)
  install(FILES ${words}/stepcast.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
foreach(folder models topologies suites prices)
  install(DIRECTORY ${folder}/ DESTINATION ${data_folder}/${folder} COMPONENT devel
    FILES_MATCHING PATTERN *.json)
endforeach()
install(DIRECTORY calibrate/profiles/ DESTINATION ${data_folder}/profiles COMPONENT devel
  FILES_MATCHING PATTERN *.json)
install(FILES examples/github-actions/stepcast-gate.yml
  DESTINATION ${data_folder}/examples/github-actions COMPONENT devel)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# The headers of src/stepcast are the library's public face; they include these of core and sim, and
# no other.
set(public_headers core/error.h core/id.h core/quantity.h core/result.h sim/engine.h sim/time.h
  sim/workload.h)
file(GLOB faces CONFIGURE_DEPENDS src/stepcast/*.h)
install(FILES ${faces} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast COMPONENT devel)
foreach(header IN LISTS public_headers)
  set(path src/${header})
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    set(path ${header})
  endif()
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${path} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast/${folder}
    COMPONENT devel)
endforeach()
get_property(layers GLOBAL PROPERTY STEPCAST_LAYERS)
foreach(layer IN LISTS layers)
  install(TARGETS stepcast_${layer} EXPORT stepcast
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT devel)
endforeach()
install(EXPORT stepcast NAMESPACE stepcast:: DESTINATION ${package_folder}
  FILE stepcastTargets.cmake COMPONENT devel)

configure_package_config_file(cmake/stepcastConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS data_folder)
# Before 1.0 a minor version may change an interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/stepcastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfigVersion.cmake DESTINATION ${package_folder}
  COMPONENT devel)

# `cpack --config build/release/CPackConfig.cmake` makes an archive that unpacks anywhere (program,
# bundled) and three Debian packages (stepcast, stepcast-ranks, libstepcast-dev), each with its
# checksum.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME stepcast)
set(CPACK_PACKAGE_CONTACT "stepcast maintainers <maintainers@stepcast.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_SYSTEM_NAME linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/PackageComponents.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME stepcast)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS stepcast-ranks)
set(CPACK_DEBIAN_RANKS_PACKAGE_NAME stepcast-ranks)
set(CPACK_DEBIAN_RANKS_PACKAGE_DEPENDS "stepcast (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_DEBIAN_DEVEL_PACKAGE_NAME libstepcast-dev)
# The headers and the CMake package need these; the program alone needs only shared libraries.
set(CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS
  "libfmt-dev, libexpected-dev, libtomlplusplus-dev, libyaml-cpp-dev, zlib1g-dev")
find_program(STEPCAST_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(STEPCAST_DPKG_SHLIBDEPS)
if(STEPCAST_DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
