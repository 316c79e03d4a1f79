# The benchmark's programs run, and records of figures can be read: what is written now and what is in the repository.

# string(JSON) came with CMake 3.19.
if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.19)
  set(check_results ${CMAKE_COMMAND})
  set(checker -P ${PROJECT_SOURCE_DIR}/cmake/check_results.cmake)

  if(TARGET onepass_bench)
    set(quick_results ${CMAKE_CURRENT_BINARY_DIR}/quick_results)
    file(MAKE_DIRECTORY ${quick_results})
    add_test(NAME bench_runs COMMAND onepass_bench --quick --json ${quick_results})
    add_test(NAME bench_writes_results COMMAND ${check_results} -D RESULTS=${quick_results} ${checker})
    set_tests_properties(bench_runs PROPERTIES FIXTURES_SETUP quick_results)
    set_tests_properties(bench_writes_results PROPERTIES FIXTURES_REQUIRED quick_results)
  endif()

  add_test(NAME results_readable COMMAND ${check_results} -D RESULTS=${PROJECT_SOURCE_DIR}/bench/results ${checker})
endif()

# The tables of figures in the documents are those of the records.
find_program(ONEPASS_PYTHON3 python3)
if(ONEPASS_PYTHON3)
  add_test(NAME tables_fresh COMMAND ${ONEPASS_PYTHON3} ${PROJECT_SOURCE_DIR}/bench/tables.py --check)
endif()
