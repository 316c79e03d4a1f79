# The tool's parts: its parsers of files, with tables of good and bad headers and a fuzzer each, and its pictures.

set(file_parsers layout utf8 json npy safetensors)
list(TRANSFORM file_parsers PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/../cli/files/)
list(TRANSFORM file_parsers APPEND .c)

foreach(format npy safetensors json)
  onepass_test(test_files_${format})
  target_sources(test_files_${format} PRIVATE ${file_parsers})
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
    add_executable(${fuzzer} ${fuzzer}.c ${file_parsers})
    target_link_libraries(${fuzzer} PRIVATE onepass_static m)
    target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found_${format})
    add_test(NAME ${fuzzer}
      COMMAND ${fuzzer} -max_total_time=10 -max_len=4096 -seed=1 -print_final_stats=1
        -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${format}- ${CMAKE_CURRENT_BINARY_DIR}/found_${format}
        ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${format})
    set_tests_properties(${fuzzer} PROPERTIES TIMEOUT 120)
  endif()

  # Everywhere: the same inputs each time, from a generator.
  add_executable(${fuzzer}_driver ${fuzzer}.c fuzz_driver.c ${file_parsers})
  target_link_libraries(${fuzzer}_driver PRIVATE onepass_static m)
  add_test(NAME ${fuzzer}_driver COMMAND ${fuzzer}_driver ${fuzz_count} ${seeds})
  set_tests_properties(${fuzzer}_driver PROPERTIES TIMEOUT 300)
endforeach()
