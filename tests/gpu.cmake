# The library on a real GPU. Built everywhere, since it needs no toolkit; where there is no GPU, or the build has no
# kernels, the test is skipped and says so. tests/gpu.sh, which is `make gpu`, runs it with the sanitizers and the
# benchmark. It looks into the library (launch shapes), so it needs the static one and its headers.
if(ONEPASS_SANITIZE)
  return() # builds with sanitizers have no kernels
endif()
add_executable(test_cuda test_cuda.c test_cuda_cases.c test_cuda_sizes.c test_cuda_graphs.c test_cuda_threads.c
  test_cuda_state.c test_cuda_rows.c test_cuda_rows_edges.c test_cuda_rows_shards.c
  test_cuda_slices.c test_cuda_vectors.c gpu.c)
target_include_directories(test_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(test_cuda PRIVATE onepass_test_cases Threads::Threads ${CMAKE_DL_LIBS})
add_test(NAME test_cuda COMMAND test_cuda)
set_tests_properties(test_cuda PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
