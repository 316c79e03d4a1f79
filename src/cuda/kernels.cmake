# The kernels: each unit, which is a header of losses or what serves every loss, compiled by nvcc for each architecture and
# compute type, and joined to one fat binary a compute type, which unit.c takes in. Machine code for the architectures
# named, and PTX of the lowest, which the driver compiles for everything later. Without nvcc the library has no kernels,
# and says so here and at run time.

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

# What this nvcc is and can: nvcc_version (13.0), nvcc_number (13000), nvcc_architectures, of which there is machine code,
# nvcc_lowest, of which there is PTX, nvcc_flags, fatbinary_flags.
macro(onepass_ask_nvcc)
  execute_process(COMMAND ${ONEPASS_NVCC} --version OUTPUT_VARIABLE told ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" found "${told}")
  set(nvcc_version ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
  math(EXPR nvcc_number "${CMAKE_MATCH_1}0 * 100 + ${CMAKE_MATCH_2}0")

  execute_process(COMMAND ${ONEPASS_NVCC} --list-gpu-arch OUTPUT_VARIABLE told ERROR_QUIET)
  string(REGEX MATCHALL "compute_[0-9]+" known "${told}")
  set(all 75 80 90 100 120)
  foreach(architecture ${all})
    if(NOT compute_${architecture} IN_LIST known)
      list(REMOVE_ITEM all ${architecture})
    endif()
  endforeach()
  list(GET all 0 nvcc_lowest)
  set(nvcc_architectures ${ONEPASS_CUDA_ARCHITECTURES})
  if(nvcc_architectures STREQUAL "all")
    set(nvcc_architectures ${all})
  elseif(nvcc_architectures STREQUAL "native")
    onepass_find_gpus(nvcc_architectures) # of cmake/native.cmake
  endif()
  if(nvcc_architectures)
    list(SORT nvcc_architectures COMPARE NATURAL)
    list(GET nvcc_architectures 0 nvcc_lowest)
  endif()

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
  file(WRITE ${folder}/probe.cu "extern \"C\" __global__ void probe(float *x) { *x = 1; }\n")
  execute_process(COMMAND ${ONEPASS_NVCC} ${nvcc_flags} -cubin -arch=sm_${nvcc_lowest} -o probe.cubin probe.cu
    WORKING_DIRECTORY ${folder} RESULT_VARIABLE result OUTPUT_FILE probe.log ERROR_FILE probe.log)
  set(${variable} "" PARENT_SCOPE)
  if(NOT result EQUAL 0)
    set(${variable} "nvcc did not work (see ${folder}/probe.log)" PARENT_SCOPE)
  endif()
endfunction()

# onepass_make_ptx(PTX ARCHITECTURE): the command that makes PTX of `source`, as onepass_compile_kernels has it.
macro(onepass_make_ptx ptx architecture)
  add_custom_command(OUTPUT ${ptx}
    COMMAND ${ONEPASS_NVCC} ${nvcc_flags} ${definitions} -DONEPASS_REAL_${REAL} -ptx -arch=compute_${architecture}
      -MMD -MT ${ptx} -MF ${ptx}.d -o ${ptx} ${source}
    DEPENDS ${source} DEPFILE ${ptx}.d COMMENT "Compiling the ${real} kernels of ${unit}" VERBATIM)
endmacro()

# onepass_compile_kernels(UNIT REAL OUTPUT): the commands that make one fat binary. The source becomes PTX once, for the
# lowest architecture, which is more than half of the work; that becomes machine code for each, all at the same time.
# Softmaxes in float ask for instructions that GPUs have from sm_80 on, and vectors for copies to shared memory that GPUs
# have from sm_80 and from sm_90 on: of these losses there is PTX of compute_80 and compute_90, too. What serves every loss
# tells whether there are clusters, so it is of compute_90 wherever losses are.
function(onepass_compile_kernels unit real output)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/cuda/unit.cu)
  set(definitions "-DONEPASS_UNIT_HEADER=\"loss/${unit}.h\"")
  if(unit IN_LIST row_units)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/cuda/row_unit.cu)
  elseif(unit IN_LIST vector_units)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/cuda/vector_unit.cu)
  elseif(unit STREQUAL "every_loss")
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/cuda/every_loss.cu)
    set(definitions)
  endif()
  set(own_ptx)
  if(unit IN_LIST softmax_units OR unit IN_LIST vector_units)
    set(own_ptx 80 90)
  elseif(unit STREQUAL "every_loss")
    set(own_ptx 90)
  endif()
  string(TOUPPER ${real} REAL)
  set(ptx ${folder}/${unit}_${real}.ptx)
  onepass_make_ptx(${ptx} ${nvcc_lowest})
  set(parts ${ptx})
  set(images --image3=kind=ptx,sm=${nvcc_lowest},file=${ptx})
  foreach(architecture ${nvcc_architectures})
    if(real STREQUAL "f32" AND nvcc_lowest LESS architecture AND architecture IN_LIST own_ptx)
      set(ptx ${folder}/${unit}_${real}_${architecture}.ptx)
      onepass_make_ptx(${ptx} ${architecture})
      list(APPEND parts ${ptx})
      list(APPEND images --image3=kind=ptx,sm=${architecture},file=${ptx})
    endif()
    set(cubin ${folder}/${unit}_${real}_sm_${architecture}.cubin)
    add_custom_command(OUTPUT ${cubin}
      COMMAND ${ONEPASS_NVCC} ${nvcc_flags} -cubin -arch=sm_${architecture} -o ${cubin} ${ptx}
      DEPENDS ${ptx} COMMENT "Compiling the ${real} kernels of ${unit} for sm_${architecture}" VERBATIM)
    list(APPEND parts ${cubin})
    list(APPEND images --image3=kind=elf,sm=${architecture},file=${cubin})
  endforeach()
  add_custom_command(OUTPUT ${output} COMMAND ${ONEPASS_FATBINARY} ${fatbinary_flags} --create=${output} ${images}
    DEPENDS ${parts} COMMENT "Joining the ${real} kernels of ${unit}" VERBATIM)
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
  set(names "PTX of compute_${nvcc_lowest}")
  foreach(architecture ${nvcc_architectures})
    string(APPEND names ", sm_${architecture}")
  endforeach()
  message(STATUS "onepass: CUDA kernels: ${names} (nvcc ${nvcc_version})")
  set(image_definitions ONEPASS_CUDA_TOOLKIT=${nvcc_number})
  set(unit_definitions "ONEPASS_CUDA_FOLDER=\"${CMAKE_CURRENT_BINARY_DIR}/cuda\"")
endif()
set_source_files_properties(cuda/image.c PROPERTIES COMPILE_DEFINITIONS "${image_definitions}")

# The units' files are those of `cuda_units`, one after the name of each unit.
foreach(file ${cuda_units})
  get_filename_component(unit ${file} NAME_WE)
  set_source_files_properties(${file} PROPERTIES COMPILE_DEFINITIONS "${unit_definitions}")
  if(NOT missing)
    set(images)
    foreach(real f32 f64)
      set(image ${CMAKE_CURRENT_BINARY_DIR}/cuda/${unit}_${real}.fatbin)
      onepass_compile_kernels(${unit} ${real} ${image})
      list(APPEND images ${image})
    endforeach()
    # The assembler takes the images in, which the compiler's list of dependencies does not know.
    set_source_files_properties(${file} PROPERTIES OBJECT_DEPENDS "${images}")
  endif()
endforeach()
