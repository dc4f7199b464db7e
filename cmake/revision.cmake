# cmake -DSOURCE=<repository> -DOUTPUT=<header> -P revision.cmake: writes the git revision as a C++ constant.
# Without git, or in an unpacked archive, the revision is empty and the record says that it is unknown.
execute_process(COMMAND git --no-optional-locks -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE _revision OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed ERROR_QUIET)
if(_failed)
  set(_revision "")
endif()
set(_text "// The git revision of this build; generated at every build.
#pragma once
namespace scalemark::build_facts {
inline constexpr char kRevision[] = \"${_revision}\";  // empty: unknown
}
")
set(_old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} _old)
endif()
if(NOT _old STREQUAL _text)
  file(WRITE ${OUTPUT} "${_text}")
endif()
