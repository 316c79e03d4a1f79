# Bad input: the tables of cases, and a fuzzer that makes up more of them; and what the library says when it is asked.

onepass_test(test_arguments)
onepass_test(test_rows_arguments)
onepass_test(test_vectors_arguments)
onepass_test(test_tensors)
onepass_test(test_shapes)
onepass_test(test_asking)

# A later version, whose structs have fields that this one's have not, and a program of today.
file(READ ${PROJECT_SOURCE_DIR}/include/onepass.h grown_header)
foreach(struct onepass_call onepass_machine_info)
  string(REPLACE "} ${struct};" "    int64_t appended[3];\n} ${struct};" grown_header "${grown_header}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/grown/onepass.h CONTENT "${grown_header}" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/onepass.h)
get_target_property(grown_sources onepass_objects SOURCES)
list(REMOVE_ITEM grown_sources cuda/image.c) # has no structs, and the kernels
list(TRANSFORM grown_sources PREPEND ${PROJECT_SOURCE_DIR}/src/)
add_library(onepass_grown OBJECT ${grown_sources})
target_compile_definitions(onepass_grown PRIVATE _POSIX_C_SOURCE=200809L ONEPASS_STATIC
  $<TARGET_PROPERTY:onepass_objects,COMPILE_DEFINITIONS>)
target_include_directories(onepass_grown PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/grown ${PROJECT_SOURCE_DIR}/src)
target_compile_options(onepass_grown PRIVATE $<TARGET_PROPERTY:onepass_objects,COMPILE_OPTIONS> -O0)
add_executable(test_grown_library test_grown_library.c $<TARGET_OBJECTS:onepass_grown>)
target_link_libraries(test_grown_library PRIVATE onepass_static Threads::Threads) # for the rest
add_test(NAME test_grown_library COMMAND test_grown_library)

# Which instruction sets there are, for scripts that run the tests under each of them.
add_executable(list_instruction_sets list_instruction_sets.c)
target_link_libraries(list_instruction_sets PRIVATE onepass_static)

set(fuzz_sources fuzz_arguments.c fuzz_board.c fuzz_rows.c fuzz_vectors.c)
file(GLOB fuzz_corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/arguments/*)

# With clang and libFuzzer; the library is built for it, or the fuzzer would be blind:
#   CC=clang cmake -S . -B build-fuzz -DONEPASS_FUZZ=ON -DONEPASS_SANITIZE=address,undefined
# ONEPASS_FUZZ_SECONDS is how long each fuzzer looks for more than its seeds have.
set(ONEPASS_FUZZ_SECONDS 10 CACHE STRING "How long each fuzzer runs as a test")
if(ONEPASS_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang" OR NOT ONEPASS_SANITIZE)
    message(FATAL_ERROR "ONEPASS_FUZZ needs clang and -DONEPASS_SANITIZE=address,undefined")
  endif()
  add_executable(fuzz_arguments ${fuzz_sources})
  target_link_libraries(fuzz_arguments PRIVATE onepass_static m)
  target_compile_options(fuzz_arguments PRIVATE -fsanitize=fuzzer-no-link)
  target_link_options(fuzz_arguments PRIVATE -fsanitize=fuzzer)
  # New inputs go to the build folder; the seeds in the source folder stay as they are.
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found)
  add_test(NAME fuzz_arguments
    COMMAND fuzz_arguments -runs=200000 -max_total_time=${ONEPASS_FUZZ_SECONDS} -max_len=512 -seed=1 -print_final_stats=1
      -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/ ${CMAKE_CURRENT_BINARY_DIR}/found
      ${CMAKE_CURRENT_SOURCE_DIR}/corpus/arguments)
  set_tests_properties(fuzz_arguments PROPERTIES TIMEOUT 120)
endif()

# Everywhere: the same inputs each time, from a generator.
add_executable(fuzz_driver ${fuzz_sources} fuzz_driver.c)
target_link_libraries(fuzz_driver PRIVATE onepass_static m)
if(ONEPASS_SANITIZE)
  set(fuzz_count 20000)
else()
  set(fuzz_count 100000)
endif()
add_test(NAME fuzz_driver COMMAND fuzz_driver ${fuzz_count} ${fuzz_corpus})
set_tests_properties(fuzz_driver PROPERTIES TIMEOUT 300)

# The bytes of accumulators: a fuzzer of its own, in the same two ways.
file(GLOB state_seeds CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/state/*)
if(ONEPASS_FUZZ)
  add_executable(fuzz_state fuzz_state.c)
  target_link_libraries(fuzz_state PRIVATE onepass_static m)
  target_compile_options(fuzz_state PRIVATE -fsanitize=fuzzer-no-link)
  target_link_options(fuzz_state PRIVATE -fsanitize=fuzzer)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found_state)
  add_test(NAME fuzz_state
    COMMAND fuzz_state -max_total_time=${ONEPASS_FUZZ_SECONDS} -max_len=4096 -seed=1 -print_final_stats=1
      -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/state- ${CMAKE_CURRENT_BINARY_DIR}/found_state
      ${CMAKE_CURRENT_SOURCE_DIR}/corpus/state)
  set_tests_properties(fuzz_state PROPERTIES TIMEOUT 120)
else()
  add_executable(fuzz_state_driver fuzz_state.c fuzz_driver.c)
  target_link_libraries(fuzz_state_driver PRIVATE onepass_static m)
  add_test(NAME fuzz_state_driver COMMAND fuzz_state_driver ${fuzz_count} ${state_seeds})
  set_tests_properties(fuzz_state_driver PROPERTIES TIMEOUT 300)
endif()
