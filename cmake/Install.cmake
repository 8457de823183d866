# `cmake --install` puts the program, its data and the layers as a CMake package in place.
include(CMakePackageConfigHelpers)
