# The SIMT harness: the CUDA engine's kernels compiled for the CPU and run thread by thread, against the CPU engine's
# bits. Needs a C++ compiler; the rest of the build does not.
if(ONEPASS_SANITIZE MATCHES thread OR ONEPASS_FUZZ)
  return() # the one does not know fibers, the other is for fuzzers
endif()

# The C compiler's own companion, since sanitizers of two compilers do not mix and a cross compiler has one of its own.
if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  get_filename_component(c_directory ${CMAKE_C_COMPILER} DIRECTORY)
  get_filename_component(c_name ${CMAKE_C_COMPILER} NAME)
  string(REGEX REPLACE "gcc" "g++" cxx_name ${c_name})
  string(REGEX REPLACE "clang" "clang++" cxx_name ${cxx_name})
  string(REGEX REPLACE "^cc$" "c++" cxx_name ${cxx_name})
  find_program(ONEPASS_CXX NAMES ${cxx_name} HINTS ${c_directory} DOC "The C++ compiler for the SIMT harness")
  mark_as_advanced(ONEPASS_CXX)
  if(NOT ONEPASS_CXX OR cxx_name STREQUAL c_name)
    message(STATUS "onepass: no C++ compiler beside ${c_name}; the CUDA kernels are not tested on the CPU")
    return()
  endif()
  set(CMAKE_CXX_COMPILER ${ONEPASS_CXX})
endif()
enable_language(CXX)

# Misaligned vectors and arrays' bounds, where the compiler can tell.
include(CheckCXXSourceCompiles)
set(simt_sanitizers -fsanitize=alignment,bounds -fno-sanitize-recover=alignment,bounds)
string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${simt_sanitizers}")
check_cxx_source_compiles("int main(int n, char **a) { int x[4] = {n}; return x[a[0][0] & 3]; }" ONEPASS_SIMT_SANITIZERS)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT ONEPASS_SIMT_SANITIZERS)
  set(simt_sanitizers)
endif()

add_library(onepass_simt SHARED simt/simt.c simt/fiber.c)
target_compile_options(onepass_simt PRIVATE -O2)

# onepass_simt_library(NAME SOURCE...): kernels, as a library of their own. No contraction, as on the GPU.
# CUDA C lets numbers be read through vectors of another type, its pragmas are its own, and what an instance of a
# template has no use for is nvcc's affair.
set(simt_flags -ffp-contract=off -fno-strict-aliasing -ftls-model=initial-exec -Wno-unknown-pragmas
  -Wno-unused-parameter ${simt_sanitizers})
if(ONEPASS_SANITIZE)
  list(APPEND simt_flags -O0) # compiled in 26 s and run, quick, in 103; with -O2 it is 188 and 47 on a Neoverse N1
else()
  list(APPEND simt_flags -Og) # compiled in 45 CPU s and run, quick, in 135; with -O2 it is 123 and 112
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND simt_flags -Wno-pass-failed) # loops that it cannot unroll
else()
  list(APPEND simt_flags -Wno-maybe-uninitialized) # lanes beyond the end, which nobody uses
endif()
function(onepass_simt_library name)
  add_library(${name} SHARED ${ARGN})
  set_target_properties(${name} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_VISIBILITY_PRESET hidden)
  target_compile_options(${name} PRIVATE ${simt_flags})
  target_include_directories(${name} PRIVATE simt ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE onepass_simt)
  target_link_options(${name} PRIVATE ${simt_sanitizers})
endfunction()

onepass_simt_library(onepass_simt_planted simt/planted.cpp)
add_executable(test_simt_harness simt/test_harness.c)
target_include_directories(test_simt_harness PRIVATE simt . ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(test_simt_harness PRIVATE onepass_simt_planted onepass_simt onepass_static)
target_link_options(test_simt_harness PRIVATE ${simt_sanitizers})
if(ONEPASS_SIMT_SANITIZERS)
  target_compile_definitions(test_simt_harness PRIVATE SIMT_SANITIZED)
endif()
add_test(NAME test_simt_harness COMMAND test_simt_harness)
set_tests_properties(test_simt_harness PROPERTIES TIMEOUT 600)

# A file for each unit, and with it a compilation.
set(simt_units)
get_property(units GLOBAL PROPERTY onepass_units)
get_property(row_units GLOBAL PROPERTY onepass_row_units)
get_property(vector_units GLOBAL PROPERTY onepass_vector_units)
foreach(unit ${units} ${row_units} ${vector_units} every_loss)
  set(source unit.cu)
  if(unit STREQUAL "every_loss")
    set(source every_loss.cu)
  elseif(unit IN_LIST row_units)
    set(source row_unit.cu)
  elseif(unit IN_LIST vector_units)
    set(source vector_unit.cu)
  endif()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/simt/${unit}.cpp)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
#define ONEPASS_UNIT_HEADER "loss/@unit@.h"
#define ONEPASS_UNIT_SOURCE "cuda/@source@"
#include "kernels.cpp"
]])
  list(APPEND simt_units ${file})
  # Kernels are the same in all units of a kind, and in both compute types: these have all of their ways through memory.
  if(simt_sanitizers AND NOT ONEPASS_SANITIZE AND NOT unit MATCHES
     "^(mse|gaussian_nll|cross_entropy.*|triplet_margin|tversky|kl_div_with_logits|multi_margin|every_loss)$")
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
  endif()
endforeach()

# A library for every few units: its shared memory, that of all its kernels, is poisoned for each block and copied when
# another block goes on. All of f32 in one had 5 MB of it, and copying took two thirds of the time of test_simt_rows.
set(units_of_library 4)
set(simt_libraries 0)
set(simt_kernels)
list(LENGTH simt_units left)
while(left GREATER 0)
  math(EXPR first "${simt_libraries} * ${units_of_library}")
  list(SUBLIST simt_units ${first} ${units_of_library} sources)
  foreach(real f32 f64)
    string(TOUPPER ${real} REAL)
    set(name onepass_simt_kernels_${real}_${simt_libraries})
    onepass_simt_library(${name} ${sources} simt/library.cpp)
    target_compile_definitions(${name} PRIVATE ONEPASS_REAL_${REAL})
    if(simt_sanitizers AND NOT ONEPASS_SANITIZE AND real STREQUAL f64)
      target_compile_options(${name} PRIVATE -fno-sanitize=all)
    endif()
    list(APPEND simt_kernels ${name})
  endforeach()
  math(EXPR simt_libraries "${simt_libraries} + 1")
  math(EXPR left "${left} - ${units_of_library}")
endwhile()
set(test_simt_parts test_simt_shapes.c test_simt_gradients.c test_simt_divisors.c simt/pairwise.c)
foreach(test test_simt test_simt_rows test_simt_vectors test_simt_slices)
  add_executable(${test} ${test}.c ${${test}_parts} simt/launch.c)
  target_include_directories(${test} PRIVATE simt . ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${test} PRIVATE SIMT_LIBRARIES=${simt_libraries})
  target_link_libraries(${test} PRIVATE onepass_test_cases ${simt_kernels} onepass_simt ${CMAKE_DL_LIBS})
  target_link_options(${test} PRIVATE ${simt_sanitizers} -Wl,--no-as-needed) # kernels are looked up by name
  foreach(real f32 f64)
    add_test(NAME ${test}_${real} COMMAND ${test} ${real})
    set_tests_properties(${test}_${real} PROPERTIES TIMEOUT 600)
  endforeach()
endforeach()
