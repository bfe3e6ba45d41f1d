# Checks of the source tree itself: who includes whom and how long files are, and their format.
typeformer_add_test(tree.layering COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/layering.py" "${PROJECT_SOURCE_DIR}" LABELS tree)
typeformer_add_test(tree.layering_itself COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/layering.py" --self-test LABELS tree)

find_program(TYPEFORMER_CLANG_FORMAT NAMES clang-format-14)
if(TYPEFORMER_CLANG_FORMAT)
  typeformer_add_test(tree.format COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/format.py" "${TYPEFORMER_CLANG_FORMAT}" "${PROJECT_SOURCE_DIR}" LABELS tree)
else()
  typeformer_skipped_test(tree.format "no clang-format-14")
endif()

# The budgets of compile time, in processor seconds; the compilers are called directly, past any cache.
set(nvcc "")
if(TARGET typeformer::cuda)
  set(nvcc --nvcc "${CMAKE_CUDA_COMPILER}")
endif()
typeformer_add_test(tree.compile_time COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/benchmarks/compile_time.py" --check --cxx "${CMAKE_CXX_COMPILER}" ${nvcc}
                    LABELS tree TIMEOUT 600)
