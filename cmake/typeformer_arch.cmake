# Which CPU is compiled for. The library never chooses one for its users: they set TYPEFORMER_ARCH (or their own flags).
# Our own tests, examples and benchmarks take x86-64-v3 (AVX2, FMA) where the building machine has it: typeformer_own_arch().
if(TYPEFORMER_NATIVE AND NOT TYPEFORMER_ARCH)
  set(TYPEFORMER_ARCH native)
endif()

set(TYPEFORMER_OWN_ARCH "")
if(TYPEFORMER_ARCH)
  # CUDA sources too: symbols carry the instruction set, and a program's units must agree on it.
  target_compile_options(
    typeformer INTERFACE "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-march=${TYPEFORMER_ARCH}>>"
                         "$<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-march=${TYPEFORMER_ARCH}>>")
elseif(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_CXX_FLAGS MATCHES "-m(arch|avx|sse|cpu)")
  include(CheckCXXSourceRuns)
  check_cxx_source_runs(
    "int main() { return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") && __builtin_cpu_supports(\"f16c\") ? 0 : 1; }"
    TYPEFORMER_RUNS_X86_64_V3)
  if(TYPEFORMER_RUNS_X86_64_V3)
    set(TYPEFORMER_OWN_ARCH "-march=x86-64-v3")
  endif()
  message(STATUS "typeformer: own programs with ${TYPEFORMER_OWN_ARCH} (choose with TYPEFORMER_ARCH)")
else()
  message(STATUS "typeformer: compiled for the compiler's default CPU; TYPEFORMER_ARCH (or TYPEFORMER_NATIVE) chooses a faster one")
endif()

function(typeformer_own_arch target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${TYPEFORMER_OWN_ARCH}>")
endfunction()

# The library's own bodies go with its own programs: units for different instruction sets do not link.
foreach(component IN LISTS TYPEFORMER_COMPONENTS)
  if(TARGET typeformer_${component}_bodies)
    typeformer_own_arch(typeformer_${component}_bodies)
  endif()
endforeach()
