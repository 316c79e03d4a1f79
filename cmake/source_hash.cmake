# One SHA256 over the sources that decide how fast an engine is. Results in
# bench/results carry it, and so tell whether they are still those of this code.
# Each engine has its own: a change of the GPU's kernels leaves the CPU's results fresh.
#
# Included, it defines two functions. As a script it prints the hash, or writes it for C:
#   cmake -D ROOT=<repository> [-D ENGINE=cpu|cuda|both] [-D OUTPUT=<header>] -P source_hash.cmake

# The sources of an engine, "cpu" or "cuda", and what both share: full paths, sorted.
function(onepass_kernel_sources root engine variable)
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(watch CONFIGURE_DEPENDS)
  endif()
  if(NOT engine MATCHES "^(cpu|cuda)$")
    message(FATAL_ERROR "There is no engine \"${engine}\": it is cpu or cuda")
  endif()
  file(GLOB files ${watch}
    ${root}/src/order.h ${root}/src/dtype.h ${root}/src/losses.def
    ${root}/src/engine.h
    ${root}/src/math/*.h ${root}/src/loss/*.h
    ${root}/src/${engine}/*.[ch] ${root}/src/${engine}/*.cu ${root}/src/${engine}/*.cuh)
  list(SORT files)
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# The hash of their names within the repository and their contents.
function(onepass_source_hash root engine variable)
  onepass_kernel_sources(${root} ${engine} files)
  set(listing "")
  foreach(file IN LISTS files)
    file(SHA256 ${file} hash)
    file(RELATIVE_PATH name ${root} ${file})
    string(APPEND listing "${hash}  ${name}\n")
  endforeach()
  string(SHA256 hash "${listing}")
  set(${variable} ${hash} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  if(NOT ENGINE)
    set(ENGINE cpu)
  endif()
  get_filename_component(root ${ROOT} ABSOLUTE) # names within it are part of the hash
  if(ENGINE STREQUAL "both") # for the tool
    onepass_source_hash(${root} cpu hash)
    onepass_source_hash(${root} cuda hash_cuda)
  else()
    onepass_source_hash(${root} ${ENGINE} hash)
  endif()
  if(OUTPUT)
    if(ENGINE STREQUAL "both")
      file(WRITE ${OUTPUT} "#define ONEPASS_SOURCES_CPU \"${hash}\"\n#define ONEPASS_SOURCES_CUDA \"${hash_cuda}\"\n")
    else()
      file(WRITE ${OUTPUT} "#define ONEPASS_SOURCES \"${hash}\"\n")
    endif()
  else()
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${hash}) # message() writes to stderr
  endif()
endif()
