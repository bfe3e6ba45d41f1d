# find_package(CUDAToolkit), on CMake 3.25 too: its module fails on a toolkit without nvToolsExt (CUDA 13 has none) when the
# project asks for CMake 3.25, since it then sets a property of a target that it did not make.
set(typeformer_minimum "${CMAKE_MINIMUM_REQUIRED_VERSION}")
if(CMAKE_VERSION VERSION_LESS 3.26)
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
endif()
find_package(CUDAToolkit QUIET)
set(CMAKE_MINIMUM_REQUIRED_VERSION "${typeformer_minimum}")
unset(typeformer_minimum)
