# One SHA256 over the sources that decide how fast the kernels are. Results in
# bench/results carry it, and so tell whether they are still those of this code.
#
# Included, it defines two functions. As a script it writes the hash for C:
#   cmake -D ROOT=<repository> -D OUTPUT=<header> -P source_hash.cmake

# The kernels' sources: full paths, sorted.
function(onepass_kernel_sources root variable)
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(watch CONFIGURE_DEPENDS)
  endif()
  file(GLOB files ${watch}
    ${root}/src/order.h ${root}/src/dtype.h ${root}/src/loss.h ${root}/src/losses.def ${root}/src/engine.h
    ${root}/src/loss/*.h
    ${root}/src/cpu/*.[ch]
    ${root}/src/cuda/*.[ch] ${root}/src/cuda/*.cu ${root}/src/cuda/*.cuh)
  list(SORT files)
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# The hash of their names within the repository and their contents.
function(onepass_source_hash root variable)
  onepass_kernel_sources(${root} files)
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
  onepass_source_hash(${ROOT} hash)
  file(WRITE ${OUTPUT} "#define ONEPASS_SOURCES \"${hash}\"\n")
endif()
