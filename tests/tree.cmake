# Checks of the source tree itself: who includes whom and how long files are, and their format.
typeformer_add_test(tree.layering COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/layering.py" "${PROJECT_SOURCE_DIR}" LABELS tree)
typeformer_add_test(tree.layering_itself COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/layering.py" --self-test LABELS tree)

find_program(TYPEFORMER_CLANG_FORMAT NAMES clang-format-14)
if(TYPEFORMER_CLANG_FORMAT)
  typeformer_add_test(tree.format COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/format.py" "${TYPEFORMER_CLANG_FORMAT}" "${PROJECT_SOURCE_DIR}" LABELS tree)
else()
  typeformer_skipped_test(tree.format "no clang-format-14")
endif()
