# The library in one file has the same bits, with less optimisation than its banner asks for, which takes a minute; and
# inlined as the compiler likes, which takes 5 seconds instead of 18.
find_program(ONEPASS_PYTHON3 python3)
if(NOT ONEPASS_PYTHON3 OR ONEPASS_SANITIZE OR CMAKE_CROSSCOMPILING)
  return() # one build that has it is enough
endif()
set(amalgamation ${CMAKE_CURRENT_BINARY_DIR}/amalgamation)
file(GLOB_RECURSE library_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/src/*.def)
add_custom_command(OUTPUT ${amalgamation}/onepass.c ${amalgamation}/onepass.h
  COMMAND ${ONEPASS_PYTHON3} ${PROJECT_SOURCE_DIR}/src/make_amalgamation.py ${amalgamation}
  DEPENDS ${library_sources} ${PROJECT_SOURCE_DIR}/include/onepass.h ${PROJECT_SOURCE_DIR}/src/make_amalgamation.py
  COMMENT "Writing the library in one file" VERBATIM)
add_executable(golden_amalgamation golden.c ${amalgamation}/onepass.c)
target_include_directories(golden_amalgamation PRIVATE ${amalgamation})
target_compile_definitions(golden_amalgamation PRIVATE ONEPASS_FREE_INLINE)
target_compile_options(golden_amalgamation PRIVATE -Og -ffp-contract=off)
target_link_libraries(golden_amalgamation PRIVATE onepass_cases Threads::Threads m)
if(OpenMP_C_FOUND)
  target_link_libraries(golden_amalgamation PRIVATE OpenMP::OpenMP_C)
endif()
# Asked what it does it says so, and takes no option for the name of a folder.
add_test(NAME amalgamation_options COMMAND sh -ec "rm -rf asked && mkdir asked && cd asked && python3 \"$1\" --help >/dev/null
  ! python3 \"$1\" --other 2>/dev/null && test -z \"$(ls -A)\"" sh ${PROJECT_SOURCE_DIR}/src/make_amalgamation.py)
add_test(NAME golden_amalgamation COMMAND golden_amalgamation --check ${golden_file})
set_tests_properties(golden_amalgamation PROPERTIES TIMEOUT 600)
