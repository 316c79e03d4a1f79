# The elementary functions of src/math/elementary.h: tests in float and in double, and a program that asks every float,
# which `make all-floats` runs.
set(transcendental_flags -O3 -fopenmp-simd)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  list(APPEND transcendental_flags -Wno-pass-failed) # neither instrumented loops nor emulating ones are vectorised
endif()

# onepass_test_transcendental(NAME FLAGS...): the test in float and in double.
function(onepass_test_transcendental variant)
  foreach(real f32 f64)
    string(TOUPPER ${real} REAL)
    set(name test_transcendental_${real}${variant})
    add_executable(${name} test_transcendental.c)
    target_compile_definitions(${name} PRIVATE ONEPASS_REAL_${REAL})
    target_compile_options(${name} PRIVATE ${transcendental_flags} ${ARGN})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE onepass_test_cases Threads::Threads)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
  endforeach()
endfunction()

# As the compiler's target has it, without fused multiply-adds and, where that is not the same, with them.
onepass_test_transcendental("")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  onepass_test_transcendental(_avx2 -mavx2 -mfma)
else()
  onepass_test_transcendental(_emulated -DONEPASS_EMULATE_FMA)
endif()

add_executable(all_floats all_floats.c)
target_compile_options(all_floats PRIVATE ${transcendental_flags} -ffp-contract=off)
target_include_directories(all_floats PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(all_floats PRIVATE m)
find_package(OpenMP COMPONENTS C)
if(OpenMP_C_FOUND)
  target_link_libraries(all_floats PRIVATE OpenMP::OpenMP_C)
endif()
