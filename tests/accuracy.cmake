# Terms and slopes against the formulas in exact arithmetic, and whether that test would find a loss without digits.
# Python cannot load a library with a sanitizer in it, nor one for another machine; the bits are those of this one.
find_program(ONEPASS_PYTHON3 python3)
if(ONEPASS_PYTHON3 AND NOT ONEPASS_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME terms_are_exact
    COMMAND ${ONEPASS_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/accuracy/check_terms.py $<TARGET_FILE:onepass_shared>)
  add_test(NAME terms_without_digits_are_found
    COMMAND ${ONEPASS_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/accuracy/check_planted.py)
  set_tests_properties(terms_are_exact PROPERTIES TIMEOUT 900)
endif()
