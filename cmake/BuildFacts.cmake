# What --version and every record say of this build, as generated headers in <build>/generated:
#   build_facts.hpp     version, compiler, build type and the libraries compiled against, at configure time
#   build_revision.hpp  the git revision, looked up at every build and rewritten only when it changed
# Only src/result/ includes build_revision.hpp, so that a commit recompiles one file.

# scalemark_header_version(variable file macro...): joins integer macros of a header, "2.28.9"; empty where unknown.
function(scalemark_header_version variable file)
  set(_numbers)
  if(EXISTS "${file}")
    foreach(_macro ${ARGN})
      file(STRINGS "${file}" _line REGEX "^#define +${_macro} +[0-9]+" LIMIT_COUNT 1)
      if(_line MATCHES "${_macro} +([0-9]+)")
        list(APPEND _numbers ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endif()
  list(JOIN _numbers "." _joined)
  set(${variable} "${_joined}" PARENT_SCOPE)
endfunction()

set(SCALEMARK_FACT_MPI "")
foreach(_dir ${MPI_C_INCLUDE_DIRS})
  scalemark_header_version(_version "${_dir}/mpi.h" OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION)
  if(_version)
    set(SCALEMARK_FACT_MPI "Open MPI ${_version}")
    break()
  endif()
endforeach()
if(NOT SCALEMARK_FACT_MPI)
  foreach(_dir ${MPI_C_INCLUDE_DIRS})
    if(EXISTS "${_dir}/mpi.h")
      file(STRINGS "${_dir}/mpi.h" _line REGEX "^#define +MPICH_VERSION +\"" LIMIT_COUNT 1)
      if(_line MATCHES "\"(.+)\"")
        set(SCALEMARK_FACT_MPI "MPICH ${CMAKE_MATCH_1}")
        break()
      endif()
    endif()
  endforeach()
endif()
if(NOT SCALEMARK_FACT_MPI AND MPI_C_VERSION)
  set(SCALEMARK_FACT_MPI "MPI standard ${MPI_C_VERSION}")
endif()
set(SCALEMARK_FACT_NCCL "")
set(SCALEMARK_FACT_CUDA "")
if(SCALEMARK_WITH_CUDA)
  scalemark_header_version(SCALEMARK_FACT_NCCL "${TorchLib_NCCL_INCLUDE_DIR}/nccl.h" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
  scalemark_header_version(_cudart "${TorchLib_CUDA_INCLUDE_DIR}/cuda_runtime_api.h" CUDART_VERSION)
  if(_cudart)
    math(EXPR _major "${_cudart} / 1000")
    math(EXPR _minor "${_cudart} % 1000 / 10")
    set(SCALEMARK_FACT_CUDA "${_major}.${_minor}")
  endif()
endif()

foreach(_kernels KERNELS TRITON)
  set(SCALEMARK_FACT_${_kernels} false)
  if(SCALEMARK_${_kernels})
    set(SCALEMARK_FACT_${_kernels} true)
  endif()
endforeach()

set(SCALEMARK_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_facts.hpp.in ${SCALEMARK_GENERATED_DIR}/build_facts.hpp @ONLY)
add_custom_target(scalemark_revision
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${SCALEMARK_GENERATED_DIR}/build_revision.hpp
    -P ${CMAKE_CURRENT_LIST_DIR}/revision.cmake
  BYPRODUCTS ${SCALEMARK_GENERATED_DIR}/build_revision.hpp
  COMMENT "" VERBATIM)
