# The targets. Each owns the headers of its folders, so that installing and the every-header-alone check follow the folders.
find_package(Threads REQUIRED)
set(TYPEFORMER_COMPONENTS "")

# typeformer_component(<name> [FOLDERS <folder>...] [HEADERS <entry header>...] [LIBS <target>...])
# A header set named HEADERS takes *.hpp; *.cuh go to a set of their own, since CMake can only check C and C++ headers.
function(typeformer_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;HEADERS;LIBS")
  set(target typeformer)
  if(NOT name STREQUAL "typeformer")
    string(APPEND target "_${name}")
  endif()
  set(root "${PROJECT_SOURCE_DIR}/include")
  set(plain "")
  set(cuda "")
  foreach(folder IN LISTS arg_FOLDERS)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${root}/typeformer/${folder}/*.hpp")
    list(APPEND plain ${found})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${root}/typeformer/${folder}/*.cuh")
    list(APPEND cuda ${found})
  endforeach()
  foreach(header IN LISTS arg_HEADERS)
    file(GLOB found CONFIGURE_DEPENDS "${root}/typeformer/${header}")
    if(header MATCHES "\\.cuh$")
      list(APPEND cuda ${found})
    else()
      list(APPEND plain ${found})
    endif()
  endforeach()

  add_library(${target} INTERFACE)
  add_library(typeformer::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS "${root}" FILES ${plain})
  target_sources(${target} INTERFACE FILE_SET cuda_headers TYPE HEADERS BASE_DIRS "${root}" FILES ${cuda})
  target_link_libraries(${target} INTERFACE ${arg_LIBS})
  set_property(TARGET ${target} PROPERTY TYPEFORMER_CUDA_HEADERS "${cuda}")
  list(APPEND TYPEFORMER_COMPONENTS ${name})
  set(TYPEFORMER_COMPONENTS "${TYPEFORMER_COMPONENTS}" PARENT_SCOPE)
endfunction()

typeformer_component(
  typeformer
  FOLDERS core policy kernel model family report
  HEADERS typeformer.hpp cpu.hpp cuda.cuh
  LIBS Threads::Threads)

typeformer_component(train FOLDERS train HEADERS train.hpp LIBS typeformer)

find_package(nlohmann_json 3.7 QUIET)
if(nlohmann_json_FOUND)
  typeformer_component(io FOLDERS io HEADERS io.hpp LIBS typeformer nlohmann_json::nlohmann_json)
else()
  message(STATUS "typeformer: no io and text components (nlohmann_json not found)")
endif()

if(TARGET typeformer_io)
  find_package(PCRE2_8 QUIET MODULE)
  find_package(Utf8proc QUIET MODULE)
  if(PCRE2_8_FOUND AND Utf8proc_FOUND)
    typeformer_component(text FOLDERS text HEADERS text.hpp LIBS typeformer_io PCRE2::8BIT utf8proc::utf8proc)
  else()
    message(STATUS "typeformer: no text component (PCRE2 with 8-bit units or utf8proc not found)")
  endif()
endif()

# The kernels' sources are the same for both; which of the two a unit means is decided by this definition.
typeformer_component(simt FOLDERS simt LIBS typeformer ${CMAKE_DL_LIBS})
target_compile_definitions(typeformer_simt INTERFACE TYPEFORMER_CUDA_ON_HOST)

if(TYPEFORMER_CUDA_FOUND)
  include(typeformer_cuda_toolkit)
  if(NOT TARGET CUDA::cublasLt)
    message(FATAL_ERROR "typeformer: the CUDA toolkit of ${CMAKE_CUDA_COMPILER} has no cuBLASLt; install it or set TYPEFORMER_CUDA=OFF")
  endif()
  typeformer_component(cuda LIBS typeformer CUDA::cudart CUDA::cublasLt)
  # As an option: CMake 3.25 does not know that nvcc 13 has C++20.
  target_compile_options(typeformer_cuda INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr>")
else()
  message(STATUS "typeformer: no cuda component (no nvcc)")
endif()
