# cmake -DSOURCE=<repository> -DOUTPUT=<header> -P revision.cmake: writes the git revision and the time of its
# commit as C++ constants. Without git, or in an unpacked archive, they are empty and the record says that they are unknown.
execute_process(COMMAND git --no-optional-locks -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE _revision OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed ERROR_QUIET)
if(_failed)
  set(_revision "")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env TZ=UTC git --no-optional-locks -C ${SOURCE} show --no-patch
    --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ HEAD
  OUTPUT_VARIABLE _committed OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed ERROR_QUIET)
if(_failed)
  set(_committed "")
endif()
set(_text "// The git revision of this build; generated at every build.
#pragma once
namespace scalemark::build_facts {
inline constexpr char kRevision[] = \"${_revision}\";  // empty: unknown
inline constexpr char kCommittedAt[] = \"${_committed}\";  // RFC 3339, UTC
}
")
set(_old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} _old)
endif()
if(NOT _old STREQUAL _text)
  file(WRITE ${OUTPUT} "${_text}")
endif()
