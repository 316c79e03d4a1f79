# The tool's parts: its parsers of files, with tables of good and bad headers and a fuzzer each, and its pictures.

set(file_parsers layout utf8 json npy safetensors)
list(TRANSFORM file_parsers PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/../cli/files/)
list(TRANSFORM file_parsers APPEND .c)
add_library(onepass_file_parsers OBJECT ${file_parsers})
target_link_libraries(onepass_file_parsers PUBLIC onepass_static m)
if(ONEPASS_FUZZ)
  target_compile_options(onepass_file_parsers PRIVATE -fsanitize=fuzzer-no-link)
endif()

foreach(format npy safetensors json)
  onepass_test(test_files_${format})
  target_link_libraries(test_files_${format} PRIVATE onepass_file_parsers)
endforeach()

# Outputs, with a look at what happens to them in which order.
onepass_test(test_files_replacement)
target_sources(test_files_replacement PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/../cli/files/replacement.c
  ${CMAKE_CURRENT_SOURCE_DIR}/../cli/files/layout.c)
target_compile_definitions(test_files_replacement PRIVATE fsync=watched_fsync rename=watched_rename)

foreach(format npy safetensors)
  set(fuzzer fuzz_${format})
  file(GLOB seeds CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${format}/*)

  # With clang and libFuzzer, as in arguments.cmake.
  if(ONEPASS_FUZZ)
    add_executable(${fuzzer} ${fuzzer}.c)
    target_link_libraries(${fuzzer} PRIVATE onepass_file_parsers)
    target_compile_options(${fuzzer} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found_${format})
    add_test(NAME ${fuzzer}
      COMMAND ${fuzzer} -max_total_time=${ONEPASS_FUZZ_SECONDS} -max_len=4096 -seed=1 -print_final_stats=1
        -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${format}- ${CMAKE_CURRENT_BINARY_DIR}/found_${format}
        ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${format})
    set_tests_properties(${fuzzer} PROPERTIES TIMEOUT 120)
  endif()

  # Everywhere else: the same inputs each time, from a generator.
  if(ONEPASS_FUZZ)
    continue()
  endif()
  add_executable(${fuzzer}_driver ${fuzzer}.c fuzz_driver.c)
  target_link_libraries(${fuzzer}_driver PRIVATE onepass_file_parsers)
  add_test(NAME ${fuzzer}_driver COMMAND ${fuzzer}_driver ${fuzz_count} ${seeds})
  set_tests_properties(${fuzzer}_driver PROPERTIES TIMEOUT 300)
endforeach()
