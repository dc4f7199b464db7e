# Tests of programs, scripts and the repository itself: one small readable script a promise.
set(SCALEMARK_SWEEP_FOLDER ${CMAKE_BINARY_DIR}/tests/measured_sweep)

# scalemark_program_test(name label SCRIPT [WORD...]): runs a script of the calling folder from the repository's root. Exit
# code 77 is a skip.
function(scalemark_program_test name label script)
  set(_script ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  if(NOT EXISTS ${_script})
    message(FATAL_ERROR "${_script}, which ${name} runs, is missing")
  endif()
  set(_python)
  if(script MATCHES "\\.py$")
    set(_python ${SCALEMARK_PYTHON})
  endif()
  add_test(NAME ${name} COMMAND ${_python} ${_script} ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT
    "SCALEMARK_BINARY_DIR=${CMAKE_BINARY_DIR};SCALEMARK_TEST_SWEEP=${SCALEMARK_SWEEP_FOLDER}")
  set_property(DIRECTORY APPEND PROPERTY SCALEMARK_SCRIPTS ${_script})
endfunction()

# scalemark_no_script_is_left_out(): a suite of the calling folder that nobody runs would vanish silently.
function(scalemark_no_script_is_left_out)
  file(GLOB _scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.py ${CMAKE_CURRENT_SOURCE_DIR}/check_*)
  get_property(_run DIRECTORY PROPERTY SCALEMARK_SCRIPTS)
  list(REMOVE_ITEM _scripts ${_run})
  if(_scripts)
    message(FATAL_ERROR "no test runs ${_scripts}")
  endif()
endfunction()
