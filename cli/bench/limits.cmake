# The limits that `onepass bench` measures. Loops of the CPU: compiled so that they are vectorised. Kernels: compiled to
# PTX by what src/cuda/kernels.cmake has found, which takes seconds; the driver makes machine code of it when the benchmark
# begins. Twice, since later architectures have more hints for the caches.
set_source_files_properties(bench/cpu_limits.c PROPERTIES COMPILE_OPTIONS -O3)

foreach(variable missing nvcc_flags nvcc_architectures fatbinary_flags)
  get_directory_property(${variable} DIRECTORY ${PROJECT_SOURCE_DIR}/src DEFINITION ${variable})
endforeach()
if(missing)
  set(limits_definitions "ONEPASS_LIMITS_MISSING=\"${missing}\"")
else()
  set(limits_image ${CMAKE_CURRENT_BINARY_DIR}/limits.fatbin)
  set(limits_source ${CMAKE_CURRENT_SOURCE_DIR}/bench/limits.cu)
  list(GET nvcc_architectures 0 lowest)
  set(targets -gencode arch=compute_${lowest},code=compute_${lowest})
  if(lowest LESS 80)
    list(APPEND targets -gencode arch=compute_80,code=compute_80)
  endif()
  list(REMOVE_ITEM fatbinary_flags -64) # which nvcc says itself
  list(TRANSFORM fatbinary_flags PREPEND -Xfatbin=)
  add_custom_command(OUTPUT ${limits_image}
    COMMAND ${ONEPASS_NVCC} ${nvcc_flags} -fatbin ${targets} ${fatbinary_flags} -o ${limits_image} ${limits_source}
    DEPENDS ${limits_source} COMMENT "Compiling the kernels of the limits" VERBATIM)
  set(limits_definitions "ONEPASS_LIMITS_IMAGE=\"${limits_image}\"")
  # The assembler takes the image in, which the compiler's list of dependencies does not know.
  set_source_files_properties(bench/gpu_limits.c PROPERTIES OBJECT_DEPENDS ${limits_image})
endif()
set_source_files_properties(bench/gpu_limits.c PROPERTIES COMPILE_DEFINITIONS "${limits_definitions}")
