# The kernels: pairwise.cu compiled by nvcc for each architecture and compute type, and joined to one fat binary a
# compute type, which image.c takes in. Machine code for the architectures named, and PTX of the lowest, which the driver
# compiles for everything later. Without nvcc the library has no kernels, and says so here and at run time.

# Sets `variable` to why there are to be no kernels, or to "", and finds nvcc.
function(onepass_find_nvcc variable)
  set(${variable} "" PARENT_SCOPE)
  if(ONEPASS_CUDA STREQUAL "AUTO" AND ONEPASS_SANITIZE)
    set(${variable} "sanitizers were on" PARENT_SCOPE)
  elseif(ONEPASS_CUDA STREQUAL "AUTO" AND CMAKE_CROSSCOMPILING)
    set(${variable} "it was cross-compiled" PARENT_SCOPE)
  elseif(why_no_cuda) # by cmake/native.cmake
    set(${variable} "${why_no_cuda}" PARENT_SCOPE)
  elseif(NOT ONEPASS_CUDA)
    set(${variable} "ONEPASS_CUDA was OFF" PARENT_SCOPE)
  else()
    find_program(ONEPASS_NVCC nvcc DOC "NVIDIA's compiler"
      HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(NOT ONEPASS_NVCC)
      set(${variable} "nvcc was not found" PARENT_SCOPE)
      return()
    endif()
    # Beside the real nvcc, which may be reached by a link.
    get_filename_component(nvcc ${ONEPASS_NVCC} REALPATH)
    get_filename_component(beside ${nvcc} DIRECTORY)
    find_program(ONEPASS_FATBINARY fatbinary DOC "NVIDIA's tool that joins kernels" HINTS ${beside})
    if(NOT ONEPASS_FATBINARY)
      set(${variable} "nvcc was found, but its tool fatbinary was not" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# What this nvcc is and can: nvcc_version (13.0), nvcc_number (13000), nvcc_architectures, nvcc_flags, fatbinary_flags.
macro(onepass_ask_nvcc)
  execute_process(COMMAND ${ONEPASS_NVCC} --version OUTPUT_VARIABLE told ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" found "${told}")
  set(nvcc_version ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
  math(EXPR nvcc_number "${CMAKE_MATCH_1}0 * 100 + ${CMAKE_MATCH_2}0")

  execute_process(COMMAND ${ONEPASS_NVCC} --list-gpu-arch OUTPUT_VARIABLE told ERROR_QUIET)
  string(REGEX MATCHALL "compute_[0-9]+" known "${told}")
  set(nvcc_architectures ${ONEPASS_CUDA_ARCHITECTURES})
  if(nvcc_architectures STREQUAL "all")
    set(nvcc_architectures 75 80 90 100 120)
    foreach(architecture ${nvcc_architectures})
      if(NOT compute_${architecture} IN_LIST known)
        list(REMOVE_ITEM nvcc_architectures ${architecture})
      endif()
    endforeach()
  endif()
  list(SORT nvcc_architectures COMPARE NATURAL)

  # No contraction and no approximations: both are part of the meaning, as on the CPU.
  set(nvcc_flags -std=c++17 -O3 --fmad=false -Xptxas -warn-spills,-warn-lmem-usage
    -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/include)
  execute_process(COMMAND ${ONEPASS_NVCC} --help OUTPUT_VARIABLE told ERROR_QUIET)
  if(told MATCHES "-allow-unsupported-compiler") # the host's compiler does no more than preprocess
    list(APPEND nvcc_flags -allow-unsupported-compiler)
  endif()
  execute_process(COMMAND ${ONEPASS_FATBINARY} --help OUTPUT_VARIABLE told ERROR_VARIABLE told)
  set(fatbinary_flags -64)
  if(told MATCHES "--compress-mode") # CUDA 12.8 and later: a third of the size
    list(APPEND fatbinary_flags --compress-mode=size)
  elseif(told MATCHES "--compress-all")
    list(APPEND fatbinary_flags --compress-all)
  endif()
endmacro()

# Whether nvcc knows the architectures, and finds a compiler of the host that it can use.
function(onepass_try_nvcc variable)
  foreach(architecture ${nvcc_architectures})
    if(NOT compute_${architecture} IN_LIST known)
      set(${variable} "nvcc ${nvcc_version} did not know sm_${architecture}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  list(GET nvcc_architectures 0 lowest)
  file(WRITE ${folder}/probe.cu "extern \"C\" __global__ void probe(float *x) { *x = 1; }\n")
  execute_process(COMMAND ${ONEPASS_NVCC} ${nvcc_flags} -cubin -arch=sm_${lowest} -o probe.cubin probe.cu
    WORKING_DIRECTORY ${folder} RESULT_VARIABLE result OUTPUT_FILE probe.log ERROR_FILE probe.log)
  set(${variable} "" PARENT_SCOPE)
  if(NOT result EQUAL 0)
    set(${variable} "nvcc did not work (see ${folder}/probe.log)" PARENT_SCOPE)
  endif()
endfunction()

# onepass_compile_kernels(REAL OUTPUT): the commands that make one fat binary. The source becomes PTX once, for the
# lowest architecture, which is more than half of the work; that becomes machine code for each, all at the same time.
function(onepass_compile_kernels real output)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/cuda/pairwise.cu)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*.def
    ${CMAKE_CURRENT_SOURCE_DIR}/math/*.h ${CMAKE_CURRENT_SOURCE_DIR}/loss/*.h ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.h
    ${PROJECT_SOURCE_DIR}/include/*.h)
  string(TOUPPER ${real} REAL)
  list(GET nvcc_architectures 0 lowest)
  set(ptx ${folder}/pairwise_${real}.ptx)
  add_custom_command(OUTPUT ${ptx}
    COMMAND ${ONEPASS_NVCC} ${nvcc_flags} -DONEPASS_REAL_${REAL} -ptx -arch=compute_${lowest} -o ${ptx} ${source}
    DEPENDS ${source} ${headers} COMMENT "Compiling the ${real} kernels" VERBATIM)
  set(parts ${ptx})
  set(images --image3=kind=ptx,sm=${lowest},file=${ptx})
  foreach(architecture ${nvcc_architectures})
    set(cubin ${folder}/pairwise_${real}_sm_${architecture}.cubin)
    add_custom_command(OUTPUT ${cubin}
      COMMAND ${ONEPASS_NVCC} ${nvcc_flags} -cubin -arch=sm_${architecture} -o ${cubin} ${ptx}
      DEPENDS ${ptx} COMMENT "Compiling the ${real} kernels for sm_${architecture}" VERBATIM)
    list(APPEND parts ${cubin})
    list(APPEND images --image3=kind=elf,sm=${architecture},file=${cubin})
  endforeach()
  add_custom_command(OUTPUT ${output} COMMAND ${ONEPASS_FATBINARY} ${fatbinary_flags} --create=${output} ${images}
    DEPENDS ${parts} COMMENT "Joining the ${real} kernels" VERBATIM)
endfunction()

onepass_find_nvcc(missing)
if(NOT missing)
  onepass_ask_nvcc()
  onepass_try_nvcc(missing)
endif()
if(missing AND ONEPASS_CUDA AND NOT ONEPASS_CUDA STREQUAL "AUTO")
  message(FATAL_ERROR "onepass: ONEPASS_CUDA is ${ONEPASS_CUDA}, but ${missing}")
elseif(missing)
  message(STATUS "onepass: built without CUDA kernels: ${missing}")
  set(image_definitions "ONEPASS_CUDA_MISSING=\"${missing}\"")
else()
  list(TRANSFORM nvcc_architectures PREPEND sm_ OUTPUT_VARIABLE names)
  list(JOIN names " " names)
  message(STATUS "onepass: CUDA kernels for ${names} (nvcc ${nvcc_version})")
  set(image_f32 ${CMAKE_CURRENT_BINARY_DIR}/cuda/pairwise_f32.fatbin)
  set(image_f64 ${CMAKE_CURRENT_BINARY_DIR}/cuda/pairwise_f64.fatbin)
  onepass_compile_kernels(f32 ${image_f32})
  onepass_compile_kernels(f64 ${image_f64})
  set(image_definitions ONEPASS_CUDA_TOOLKIT=${nvcc_number}
    "ONEPASS_CUDA_IMAGE_F32=\"${image_f32}\"" "ONEPASS_CUDA_IMAGE_F64=\"${image_f64}\"")
  # The assembler takes the images in, which the compiler's list of dependencies does not know.
  set_source_files_properties(cuda/image.c PROPERTIES OBJECT_DEPENDS "${image_f32};${image_f64}")
endif()
set_source_files_properties(cuda/image.c PROPERTIES COMPILE_DEFINITIONS "${image_definitions}")
