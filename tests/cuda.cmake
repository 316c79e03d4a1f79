# The CUDA engine's host side, tested without a GPU: a library that is called libcuda.so.1 and is none, found by
# LD_LIBRARY_PATH. The tests bring kernels of their own, so nvcc is not needed either.

# onepass_fake_driver(NAME DEFINITION...): the fake in a folder of its own.
function(onepass_fake_driver name)
  add_library(${name} SHARED fake_driver.c fake_driver_work.c)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE Threads::Threads)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1 C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name})
endfunction()

# onepass_host_test(NAME PROGRAM FAKE ARGUMENT...): the program with that fake as the driver.
function(onepass_host_test name program fake)
  add_test(NAME ${name} COMMAND ${program} ${ARGN})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/${fake}"
    SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

# The lists of units, for the kernels that the tests bring.
foreach(list units row_units vector_units)
  get_property(units GLOBAL PROPERTY onepass_${list})
  list(TRANSFORM units REPLACE "(.+)" "UNIT(\\1)" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" lines)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/cuda_host/${list}.h @ONLY CONTENT "@lines@\n")
endforeach()

onepass_fake_driver(fake_driver)
onepass_fake_driver(fake_driver_without_stream_id FAKE_LACKS_STREAM_ID)
foreach(part preparation launches rows workspaces slices threads failures)
  set(program test_cuda_host_${part})
  add_executable(${program} ${program}.c)
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_BINARY_DIR}/cuda_host)
  target_link_libraries(${program} PRIVATE onepass_static Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(${program} fake_driver fake_driver_without_stream_id)
  onepass_host_test(${program} ${program} fake_driver)
endforeach()
onepass_host_test(test_cuda_host_missing_symbol test_cuda_host_preparation fake_driver_without_stream_id missing-symbol)
onepass_host_test(test_cuda_host_no_driver test_cuda_host_preparation no_such_folder no-driver)

onepass_test(test_scale)
