# cmake -DALIAS_FOR=... -DCXX=... -DINCLUDES="a;b" -DFOLDER=... -DEXPECTED=... -DWORK=... -P alias_program.cmake
# What examples/alias_for prints for a checkpoint is a program that compiles, loads the checkpoint and describes it.
file(MAKE_DIRECTORY "${WORK}")
execute_process(COMMAND "${ALIAS_FOR}" "${FOLDER}" My-model OUTPUT_FILE "${WORK}/program.cpp" COMMAND_ERROR_IS_FATAL ANY)
list(TRANSFORM INCLUDES PREPEND "-I")
execute_process(COMMAND ${CXX} -std=c++20 -O0 ${INCLUDES} "${WORK}/program.cpp" -o "${WORK}/program" -pthread COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/program" "${FOLDER}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(FIND "${text}" "${EXPECTED}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "expected '${EXPECTED}' in\n${text}")
endif()

execute_process(COMMAND "${ALIAS_FOR}" "${WORK}/nothing" RESULT_VARIABLE result ERROR_VARIABLE error)
if(result EQUAL 0 OR NOT error MATCHES "nothing")
  message(FATAL_ERROR "a missing checkpoint: exit status ${result}, ${error}")
endif()
