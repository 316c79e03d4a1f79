# Records of figures can be read, and the tables of figures in the documents are theirs. That the benchmark runs is tested
# with the Python package.
find_program(ONEPASS_PYTHON3 python3)
if(ONEPASS_PYTHON3)
  add_test(NAME results_readable COMMAND ${ONEPASS_PYTHON3} ${PROJECT_SOURCE_DIR}/bench/tables.py --records)
  add_test(NAME tables_fresh COMMAND ${ONEPASS_PYTHON3} ${PROJECT_SOURCE_DIR}/bench/tables.py --check)
endif()
