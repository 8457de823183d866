# Communication between GPUs, where the CUDA toolkit and NCCL are: a library of its own, so that
# programs without it start on machines that lack both.
#
#   stepcast_nccl   src/comm/nccl; needs no driver to build, link or start, and finds NCCL's library
#                   when it first communicates
find_package(CUDAToolkit 12.0 QUIET)
if(CUDAToolkit_FOUND)
  find_path(STEPCAST_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(STEPCAST_NCCL_INCLUDE)
  if(STEPCAST_NCCL_INCLUDE)
    file(GLOB sources CONFIGURE_DEPENDS src/comm/nccl/*.cpp)
    add_library(stepcast_nccl STATIC ${sources})
    # Looked for by name first, as the loader does.
    find_library(STEPCAST_NCCL_LIBRARY NAMES libnccl.so.2 nccl
      HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
    mark_as_advanced(STEPCAST_NCCL_LIBRARY)
    if(STEPCAST_NCCL_LIBRARY)
      set_source_files_properties(src/comm/nccl/nccl_library.cpp PROPERTIES COMPILE_DEFINITIONS
        "STEPCAST_NCCL_FILE=\"${STEPCAST_NCCL_LIBRARY}\"")
    endif()
    target_link_libraries(stepcast_nccl PUBLIC stepcast_comm PRIVATE stepcast_flags CUDA::cudart_static
      ${CMAKE_DL_LIBS})
    # As a system's: its headers do not pass our warnings.
    target_include_directories(stepcast_nccl SYSTEM PRIVATE ${STEPCAST_NCCL_INCLUDE})
  endif()
endif()
if(NOT TARGET stepcast_nccl)
  message(STATUS "No CUDA toolkit with NCCL: communication between GPUs is not built")
endif()
