# The C code of the documents, compiled and run: whole programs; functions, where a block begins with an include and has
# no main, which are only compiled; and pieces, which are the body of a main function behind three includes. They must
# compile without a warning and end well.

# Writes a program and adds it as a test.
function(add_document_program name body)
  file(CONFIGURE OUTPUT ${name}.c CONTENT "${body}\n" @ONLY) # writes only what changed
  add_executable(${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  target_link_libraries(${name} PRIVATE onepass_shared m)
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# Takes the blocks that begin with ```c out of a document.
function(add_document file prefix)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} rest)
  set(number 0)
  string(FIND "${rest}" "\n```c\n" start)
  while(start GREATER -1)
    math(EXPR start "${start} + 6")
    string(SUBSTRING "${rest}" ${start} -1 rest)
    string(FIND "${rest}" "\n```" end)
    string(SUBSTRING "${rest}" 0 ${end} block)
    math(EXPR number "${number} + 1")
    if(block MATCHES "^#include" AND NOT block MATCHES "int main\\(")
      set(block "${block}\nint main(void) {\nreturn 0;\n}")
    elseif(NOT block MATCHES "int main\\(")
      set(includes "#include <onepass.h>\n#include <stdio.h>\n#include <string.h>\n")
      set(block "${includes}int main(void) {\n${block}\nreturn 0;\n}")
    endif()
    add_document_program(${prefix}_${number} "${block}")
    string(FIND "${rest}" "\n```c\n" start)
  endwhile()
  if(number EQUAL 0)
    message(FATAL_ERROR "${file} has no C code; it should show some")
  endif()
endfunction()

add_document(${PROJECT_SOURCE_DIR}/README.md readme_program)
add_document(${PROJECT_SOURCE_DIR}/docs/api.md api_piece)
add_document(${PROJECT_SOURCE_DIR}/docs/rows.md rows_piece)

# What they say of the losses, pictures included, is what the library says. Python cannot load a library with a
# sanitizer in it, nor one for another machine.
find_program(ONEPASS_PYTHON3 python3)
if(ONEPASS_PYTHON3 AND NOT ONEPASS_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME losses_page_fresh
    COMMAND ${ONEPASS_PYTHON3} ${PROJECT_SOURCE_DIR}/docs/make_losses.py --check $<TARGET_FILE:onepass_shared>)
endif()
