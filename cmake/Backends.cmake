# What real runs compute and communicate with. Only stepcast-rank links these; forecasts need none.
#
#   STEPCAST_BLAS   matrix products on the CPU: OpenBLAS, which picks its kernels at run time
#   STEPCAST_MPI    ranks in processes of their own
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
set(STEPCAST_BLAS $<BUILD_INTERFACE:PkgConfig::OPENBLAS>)
find_package(MPI REQUIRED COMPONENTS CXX)
set(STEPCAST_MPI $<BUILD_INTERFACE:MPI::MPI_CXX>)
