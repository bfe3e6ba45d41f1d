# typeformer_ptx_tests(<name> OPERATION <operation> KERNELS <source> ... [LABELS ...] [TIMEOUT seconds])
# runs the program <name>_plain of typeformer_simt_tests with nvcc's PTX of its kernels in place of the host layer:
#   <name>_ptx80                   the code for sm_80, threads in order, asynchronous copies late
#   <name>_ptx90                   the code for sm_90, threads in a random order, asynchronous copies at random
#   <name>_ptx_both                the host layer first, then the PTX on the same memory
#   <name>_ptx_ulp                 approximate instructions are off by up to 8 units in the last place, copies early
#   <name>_ptx_entries             nvcc's entries and the kernels that are launched are the same
#   <name>_ptx_coverage            nearly every instruction of every entry ran
#   <name>_ptx_agreement           the host layer and the PTX agree, bit for bit or within a bound
# The last three read reports of the runs and expected/<operation>.txt; see check.py. An operation without that file is listed
# as skipped. In it a line `nvcc <options>` adds options of the compiler, `filter <test cases>` leaves test cases out that would
# take too long. KERNELS are the program's own sources of kernels: nvcc instantiates from them what the program launches.
include_guard(GLOBAL)

if(TYPEFORMER_CUDA_FOUND AND NOT TYPEFORMER_TEST_PREFIX)
  add_library(
    typeformer_ptx STATIC EXCLUDE_FROM_ALL
    access.cpp block.cpp builtin.cpp collective.cpp conversion.cpp copies.cpp decoder.cpp lexer.cpp loader.cpp matrix.cpp memory.cpp module.cpp
    numbers.cpp parser.cpp symbols.cpp table_bits.cpp table_floats.cpp table_halves.cpp table_integers.cpp warp.cpp)
  get_target_property(sources typeformer_ptx SOURCES)
  list(TRANSFORM sources PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
  set_target_properties(typeformer_ptx PROPERTIES SOURCES "${sources}")
  target_compile_features(typeformer_ptx PUBLIC cxx_std_20)
  target_include_directories(typeformer_ptx PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
  # One rounding for each operation of a lane. Registers are words of all widths: conversions between them are its business.
  target_compile_options(typeformer_ptx PRIVATE -O2 -g1 -ffp-contract=off -Wno-conversion)
  typeformer_own_arch(typeformer_ptx)

  add_library(typeformer_ptx_launcher OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_LIST_DIR}/launcher.cpp")
  target_link_libraries(typeformer_ptx_launcher PRIVATE typeformer::simt typeformer_ptx)
  target_include_directories(typeformer_ptx_launcher PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_options(typeformer_ptx_launcher PRIVATE -O1 -g1 -Wno-unknown-pragmas)
endif()
set(typeformer_ptx_folder "${CMAKE_CURRENT_LIST_DIR}")

# typeformer_ptx_compile(<source> <architecture> <output variable> [NAME name] [OPTIONS ...]): a rule that makes PTX of a source.
function(typeformer_ptx_compile source architecture output)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "NAME" "OPTIONS")
  cmake_path(ABSOLUTE_PATH source)
  cmake_path(GET source STEM stem)
  if(NOT arg_NAME)
    set(arg_NAME ${stem}_${architecture})
  endif()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/ptx/${arg_NAME}.ptx")
  set(${output} "${file}" PARENT_SCOPE)
  get_property(known GLOBAL PROPERTY "TYPEFORMER_PTX ${file}")
  if(known)
    return()  # a source of several programs
  endif()
  set_property(GLOBAL PROPERTY "TYPEFORMER_PTX ${file}" TRUE)
  set(host "")
  if(CMAKE_CUDA_HOST_COMPILER)
    set(host -ccbin "${CMAKE_CUDA_HOST_COMPILER}")
  endif()
  set(includes "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests")
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    list(APPEND includes -isystem "${folder}")
  endforeach()
  add_custom_command(
    OUTPUT "${file}"
    COMMAND "${CMAKE_CUDA_COMPILER}" ${host} -ptx -x cu -std=c++20 -arch=sm_${architecture} -lineinfo --expt-relaxed-constexpr ${includes}
            ${arg_OPTIONS} "${source}" -o "${file}" -MD -MF "${file}.d" -MT "${file}"
    DEPENDS "${source}"
    DEPFILE "${file}.d"
    COMMENT "PTX of ${stem} for sm_${architecture}"
    VERBATIM)
endfunction()

function(typeformer_ptx_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OPERATION;TIMEOUT" "KERNELS;LABELS")
  if(TYPEFORMER_TEST_PREFIX)
    return()  # another compiler's tree: nvcc's code is the same
  endif()
  set(runs "ptx80 80 0 late 0" "ptx90 90 1 random 0" "ptx_both 80 0 late 0" "ptx_ulp 90 0 early 8")
  if(NOT TARGET typeformer_ptx)
    foreach(run IN LISTS runs)
      string(REGEX REPLACE " .*" "" run "${run}")
      typeformer_skipped_test(${name}_${run} "no nvcc")
    endforeach()
    return()
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
    return()  # the plain tree runs them
  endif()

  set(expected "${typeformer_ptx_folder}/expected/${arg_OPERATION}.txt")
  if(NOT EXISTS "${expected}")
    typeformer_skipped_test(${name}_ptx "no tests/ptx/expected/${arg_OPERATION}.txt")
    return()
  endif()
  set(nvcc "")
  set(filter "")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${expected}")
  foreach(what IN ITEMS nvcc filter)
    file(STRINGS "${expected}" lines REGEX "^${what} ")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^${what} +| *#.*" "" line "${line}")
      list(APPEND ${what} "${line}")
    endforeach()
  endforeach()
  list(TRANSFORM filter PREPEND "-tce=")

  target_sources(${name}_plain PRIVATE $<TARGET_OBJECTS:typeformer_ptx_launcher>)
  target_link_libraries(${name}_plain PRIVATE typeformer_ptx)
  foreach(architecture IN ITEMS 80 90)
    set(files_${architecture} "")
    foreach(source IN LISTS arg_KERNELS)
      typeformer_ptx_compile("${source}" ${architecture} file OPTIONS ${nvcc})
      list(APPEND files_${architecture} "${file}")
    endforeach()
    list(JOIN files_${architecture} ":" list_${architecture})
  endforeach()
  add_custom_target(${name}_ptx ALL DEPENDS ${files_80} ${files_90})

  set(reports "${CMAKE_CURRENT_BINARY_DIR}/ptx")
  foreach(run IN LISTS runs)
    string(REPLACE " " ";" run "${run}")
    list(POP_FRONT run suffix architecture seed copies ulp)
    set(mode ptx)
    if(suffix STREQUAL "ptx_both")
      set(mode both)
    endif()
    typeformer_add_test(
      ${name}_${suffix}
      COMMAND
        ${CMAKE_COMMAND} -E env TYPEFORMER_PTX=${list_${architecture}} TYPEFORMER_PTX_MODE=${mode} TYPEFORMER_PTX_ULP=${ulp}
        TYPEFORMER_PTX_REPORT=${reports}/${name}_${suffix}.txt TYPEFORMER_PTX_VERBOSE=1 TYPEFORMER_SIMT_SEED=${seed} TYPEFORMER_SIMT_COPIES=${copies}
        $<TARGET_FILE:${name}_plain> ${filter}
      LABELS ${arg_LABELS} ptx TIMEOUT ${arg_TIMEOUT}
      PROPERTIES FIXTURES_SETUP ${name}_${suffix})
  endforeach()
  foreach(check IN ITEMS "entries ptx80 ptx90" "coverage ptx80 ptx90" "agreement ptx_both")
    string(REPLACE " " ";" check "${check}")
    list(POP_FRONT check what)
    list(TRANSFORM check PREPEND "${name}_" OUTPUT_VARIABLE fixtures)
    list(TRANSFORM fixtures REPLACE "(.+)" "${reports}/\\1.txt" OUTPUT_VARIABLE files)
    typeformer_add_test(
      ${name}_ptx_${what} COMMAND Python3::Interpreter "${typeformer_ptx_folder}/check.py" ${what} "${expected}" ${files}
      LABELS ${arg_LABELS} ptx PROPERTIES FIXTURES_REQUIRED "${fixtures}")
  endforeach()
endfunction()
