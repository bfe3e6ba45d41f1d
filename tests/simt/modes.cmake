# typeformer_simt_tests(<name> SOURCES ... [LIBS ...] [LABELS ...] [TIMEOUT seconds] [OPTIONS ...] [MODES plain|sanitized|racecheck ...])
# builds a doctest program of CUDA kernels for the host and runs it in every mode of the host layer, one CTest for each:
#   <name>_plain                     threads, warps and blocks in order, asynchronous copies late
#   <name>_early                     asynchronous copies at once
#   <name>_seed_1, _seed_2           two random orders, with late and with random copies
#   <name>_sanitized                 AddressSanitizer and UndefinedBehaviorSanitizer
#   <name>_racecheck                 the race checker
include_guard(GLOBAL)

# The kernels are compiled with -fsanitize=thread, this file is not, and nothing is linked with it.
add_library(typeformer_racecheck OBJECT "${CMAKE_CURRENT_LIST_DIR}/racecheck_runtime.cpp")
target_link_libraries(typeformer_racecheck PRIVATE typeformer::simt)

set(typeformer_racecheck_options -fsanitize=thread -DTYPEFORMER_SIMT_RACECHECK)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND typeformer_racecheck_options "SHELL:--param tsan-instrument-func-entry-exit=0" -Wno-tsan)
else()
  list(APPEND typeformer_racecheck_options "SHELL:-mllvm -tsan-instrument-func-entry-exit=0")
endif()

# typeformer_simt_program(<target> <mode> SOURCES ... [LIBS ...] [OPTIONS ...])
function(typeformer_simt_program target mode)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;LIBS;OPTIONS")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE typeformer::simt doctest::doctest ${arg_LIBS})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_options(${target} PRIVATE -O1 -g1 -Wno-unknown-pragmas)
  if(mode STREQUAL "sanitized")
    target_compile_options(${target} PRIVATE ${typeformer_sanitizers})
    target_link_options(${target} PRIVATE ${typeformer_sanitizers})
  elseif(mode STREQUAL "racecheck")
    target_compile_options(${target} PRIVATE ${typeformer_racecheck_options})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:typeformer_racecheck>)
  endif()
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
endfunction()

function(typeformer_simt_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LIBS;LABELS;OPTIONS;MODES")
  if(NOT arg_MODES)
    set(arg_MODES plain sanitized racecheck)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
    set(arg_MODES plain)  # the whole tree is sanitized already
  elseif(TYPEFORMER_TEST_PREFIX)
    list(REMOVE_ITEM arg_MODES sanitized)  # a second tree, for another compiler
  endif()
  foreach(mode IN LISTS arg_MODES)
    set(target "${name}_${mode}")
    typeformer_simt_program(${target} ${mode} SOURCES ${arg_SOURCES} $<TARGET_OBJECTS:typeformer_test_main> LIBS ${arg_LIBS} OPTIONS ${arg_OPTIONS})
    typeformer_add_test(${target} COMMAND ${target} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
  endforeach()
  if(NOT plain IN_LIST arg_MODES)
    return()
  endif()
  foreach(run IN ITEMS "early 0 early" "seed_1 1 late" "seed_2 2 random")
    separate_arguments(run UNIX_COMMAND "${run}")
    list(GET run 0 suffix)
    list(GET run 1 seed)
    list(GET run 2 copies)
    typeformer_add_test(${name}_${suffix} COMMAND ${CMAKE_COMMAND} -E env TYPEFORMER_SIMT_SEED=${seed} TYPEFORMER_SIMT_COPIES=${copies} $<TARGET_FILE:${name}_plain>
                        LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
  endforeach()
endfunction()

# NVIDIA's headers alone, without its libraries.
if(TARGET typeformer::cuda AND NOT TARGET typeformer_nvidia_headers)
  add_library(typeformer_nvidia_headers INTERFACE)
  target_include_directories(typeformer_nvidia_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
endif()

# typeformer_simt_synchronization(<name> SOURCES <kernel file> ... TEST <test.cpp> [ROOT <include folder>] [EQUIVALENT <regex> ...]
#                                 [LABELS ...] [TIMEOUT seconds] [PROPERTIES ...])
# A CTest that leaves every synchronization of the kernel files out, one at a time, and runs the test under the race checker;
# see mutate_synchronization.py. SOURCES are relative to ROOT, which is include/ by default.
function(typeformer_simt_synchronization name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TEST;ROOT;TIMEOUT" "SOURCES;EQUIVALENT;LABELS;PROPERTIES")
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" OR TYPEFORMER_TEST_PREFIX)
    return()  # once, in the plain tree, is enough
  endif()
  if(NOT arg_ROOT)
    set(arg_ROOT "${PROJECT_SOURCE_DIR}/include")
  endif()
  cmake_path(ABSOLUTE_PATH arg_TEST)
  list(TRANSFORM typeformer_racecheck_options REPLACE "^SHELL:" "" OUTPUT_VARIABLE flags)
  list(JOIN flags " " flags)
  list(TRANSFORM CMAKE_DL_LIBS PREPEND "-l" OUTPUT_VARIABLE dl)
  set(includes "-I{work}/overlay -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/tests -I${arg_ROOT}")
  set(compile "${CMAKE_CXX_COMPILER} -std=c++20 -O1 -g1 -Wno-unknown-pragmas -DTYPEFORMER_CUDA_ON_HOST ${flags} ${includes} -c ${arg_TEST} -o {work}/t.o")
  set(link "${CMAKE_CXX_COMPILER} {work}/t.o $<TARGET_OBJECTS:typeformer_racecheck> -o {work}/t -pthread ${dl}")
  set(sources "")
  foreach(file IN LISTS arg_SOURCES)
    list(APPEND sources --source "${file}")
  endforeach()
  set(equivalent "")
  foreach(rule IN LISTS arg_EQUIVALENT)
    list(APPEND equivalent --equivalent "${rule}")
  endforeach()
  typeformer_add_test(${name}
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/simt/mutate_synchronization.py" --root "${arg_ROOT}" ${sources}
            --build "${compile} && ${link}" ${equivalent}
    LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} PROPERTIES ${arg_PROPERTIES})
endfunction()

# typeformer_simt_logic_mutation(<name> OPERATION <operation> SAMPLE <mutants> [TESTS <object library>] [LABELS ...] [TIMEOUT seconds])
# A CTest that changes the logic of an operation's kernel files, as many mutants as SAMPLE says; see mutate_logic.py, which runs all
# of them by hand. TESTS: the operation's tests without its kernels, where they are compiled already.
function(typeformer_simt_logic_mutation name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OPERATION;SAMPLE;TESTS;TIMEOUT" "LABELS")
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" OR TYPEFORMER_TEST_PREFIX)
    return()  # once, in the plain tree, is enough
  endif()
  set(objects "")
  if(arg_TESTS)
    set(objects --objects "$<JOIN:$<TARGET_OBJECTS:${arg_TESTS}>,:>:$<TARGET_OBJECTS:typeformer_test_main>")
  endif()
  typeformer_add_test(${name}
    COMMAND ${CMAKE_COMMAND} -E env "CXX=${CMAKE_CXX_COMPILER}" $<TARGET_FILE:Python3::Interpreter> "${PROJECT_SOURCE_DIR}/tests/simt/mutate_logic.py"
            ${arg_OPERATION} --plain --sample ${arg_SAMPLE} ${objects}
    LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
endfunction()
