# What users get: an installation that outside programs can be built against, and documents whose code works.

include(documents.cmake)

# A sanitizer's runtime or an emulator would have to follow into the outside programs; the plain build shows enough.
if(ONEPASS_SANITIZE OR CMAKE_CROSSCOMPILING)
  message(STATUS "onepass: the packaging test is left out of sanitizer and cross builds")
else()
  add_test(NAME packaging COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/packaging/check.sh
    ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER} ${PROJECT_VERSION})
  set_tests_properties(packaging PROPERTIES TIMEOUT 300)
endif()
