# Finds LibTorch without its own CMake package (which wants a CUDA toolkit): the torch wheel of the
# virtual environment, an unpacked LibTorch, or a cluster's own, given by TORCH_ROOT.
# Targets: scalemark::torch (CPU libraries), scalemark::torch_cuda (CUDA libraries, NCCL, cudart) and scalemark::nccl
# (the last two of these alone), both only where the installation has them. Sets TorchLib_VERSION, TorchLib_CUDA_FOUND.
if(NOT TORCH_ROOT)
  file(GLOB _candidates "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  list(APPEND _candidates "")
  list(GET _candidates 0 _first)
  set(TORCH_ROOT "${_first}" CACHE PATH "Folder with LibTorch's include/ and lib/" FORCE)
endif()

# Another TORCH_ROOT in a configured build folder: forget what was found under the old one.
if(NOT "${TORCH_ROOT}" STREQUAL "${TorchLib_ROOT}")
  foreach(_found INCLUDE_DIR CPU_LIBRARY C10_LIBRARY CUDA_INCLUDE_DIR CUDA_CRT_INCLUDE_DIR CCCL_INCLUDE_DIR
          NCCL_INCLUDE_DIR CUDA_LIBRARY C10_CUDA_LIBRARY
          NCCL_LIBRARY CUDART_LIBRARY)
    unset(TorchLib_${_found} CACHE)
  endforeach()
  set(TorchLib_ROOT "${TORCH_ROOT}" CACHE INTERNAL "The TORCH_ROOT that the other TorchLib_ variables belong to")
endif()

find_path(TorchLib_INCLUDE_DIR ATen/ATen.h PATHS "${TORCH_ROOT}/include" NO_DEFAULT_PATH)
find_library(TorchLib_CPU_LIBRARY torch_cpu PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)
find_library(TorchLib_C10_LIBRARY c10 PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)

if(EXISTS "${TORCH_ROOT}/version.py")
  file(STRINGS "${TORCH_ROOT}/version.py" _line REGEX "^__version__ = ")
  string(REGEX REPLACE "^__version__ = '([^']*)'.*" "\\1" TorchLib_VERSION "${_line}")
elseif(EXISTS "${TORCH_ROOT}/build-version")
  file(STRINGS "${TORCH_ROOT}/build-version" TorchLib_VERSION LIMIT_COUNT 1)
else()  # a distribution's own
  file(GLOB _headers "${TorchLib_INCLUDE_DIR}/torch/headeronly/version.h"
    "${TorchLib_INCLUDE_DIR}/torch/csrc/api/include/torch/version.h")
  set(TorchLib_VERSION "")
  foreach(_header ${_headers})
    file(STRINGS "${_header}" _lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
    string(REGEX REPLACE "[^0-9;]" "" _numbers "${_lines}")
    string(JOIN "." TorchLib_VERSION ${TorchLib_VERSION} ${_numbers})
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchLib
  REQUIRED_VARS TorchLib_CPU_LIBRARY TorchLib_C10_LIBRARY TorchLib_INCLUDE_DIR
  VERSION_VAR TorchLib_VERSION
  FAIL_MESSAGE "No LibTorch that serves under TORCH_ROOT='${TORCH_ROOT}': run scripts/setup, or give -DTORCH_ROOT=<folder with include/ and lib/>")

if(TorchLib_FOUND AND NOT TARGET scalemark::torch)
  get_filename_component(_lib_dir "${TorchLib_CPU_LIBRARY}" DIRECTORY)
  add_library(scalemark::torch INTERFACE IMPORTED)
  target_include_directories(scalemark::torch SYSTEM INTERFACE
    "${TorchLib_INCLUDE_DIR}" "${TorchLib_INCLUDE_DIR}/torch/csrc/api/include")
  target_link_options(scalemark::torch INTERFACE "LINKER:--no-as-needed" "LINKER:--allow-shlib-undefined"
    "LINKER:-rpath,${_lib_dir}")
  target_link_libraries(scalemark::torch INTERFACE "${TorchLib_CPU_LIBRARY}" "${TorchLib_C10_LIBRARY}")
  # Without OpenMP at::parallel_for() compiles to a loop of one thread. LibTorch's own run-time library, where it brings
  # one: a second would keep threads of its own.
  file(GLOB _openmp "${_lib_dir}/libgomp*.so*" "${_lib_dir}/libiomp5.so" "${_lib_dir}/../../torch.libs/libgomp*.so*")
  list(APPEND _openmp gomp)
  list(GET _openmp 0 _openmp)
  target_compile_options(scalemark::torch INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fopenmp>")
  target_link_libraries(scalemark::torch INTERFACE "$<$<CXX_COMPILER_ID:GNU>:${_openmp}>")
endif()

# CUDA, NCCL and their headers: the wheels beside torch, or a cluster's own by CUDA_ROOT / NCCL_ROOT.
get_filename_component(_site "${TORCH_ROOT}" DIRECTORY)
file(GLOB _cuda_includes "${CUDA_ROOT}/include" "${_site}/nvidia/cu1*/include" "${_site}/nvidia/cuda_runtime/include")
file(GLOB _cuda_libs "${CUDA_ROOT}/lib64" "${_site}/nvidia/cu1*/lib" "${_site}/nvidia/cuda_runtime/lib")
find_path(TorchLib_CUDA_INCLUDE_DIR cuda_runtime_api.h PATHS ${_cuda_includes} NO_DEFAULT_PATH)
# cuda_runtime_api.h includes crt/host_defines.h and cuda_fp16.h nv/target: wheels of their own (scripts/setup fetches
# them). Beside a torch that was installed without the first, Triton's copy, a few macros, serves as well.
find_path(TorchLib_CUDA_CRT_INCLUDE_DIR crt/host_defines.h PATHS ${_cuda_includes}
  "${_site}/triton/backends/nvidia/include" NO_DEFAULT_PATH)
list(TRANSFORM _cuda_includes APPEND /cccl OUTPUT_VARIABLE _cccl_includes)
find_path(TorchLib_CCCL_INCLUDE_DIR nv/target PATHS ${_cuda_includes} ${_cccl_includes} NO_DEFAULT_PATH)
find_path(TorchLib_NCCL_INCLUDE_DIR nccl.h PATHS "${NCCL_ROOT}/include" "${_site}/nvidia/nccl/include" ${_cuda_includes} NO_DEFAULT_PATH)
find_library(TorchLib_CUDA_LIBRARY torch_cuda PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)
find_library(TorchLib_C10_CUDA_LIBRARY c10_cuda PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)
find_library(TorchLib_NCCL_LIBRARY NAMES nccl libnccl.so.2 PATHS "${NCCL_ROOT}/lib" "${_site}/nvidia/nccl/lib" NO_DEFAULT_PATH)
find_library(TorchLib_CUDART_LIBRARY NAMES cudart libcudart.so.13 libcudart.so.12 PATHS ${_cuda_libs} NO_DEFAULT_PATH)
set(TorchLib_CUDA_FOUND FALSE)
if(TorchLib_CUDA_LIBRARY AND TorchLib_C10_CUDA_LIBRARY AND TorchLib_NCCL_LIBRARY AND TorchLib_CUDART_LIBRARY
   AND TorchLib_CUDA_INCLUDE_DIR AND TorchLib_CUDA_CRT_INCLUDE_DIR AND TorchLib_CCCL_INCLUDE_DIR AND TorchLib_NCCL_INCLUDE_DIR)
  set(TorchLib_CUDA_FOUND TRUE)
  if(NOT TARGET scalemark::torch_cuda)
    get_filename_component(_nccl_dir "${TorchLib_NCCL_LIBRARY}" DIRECTORY)
    get_filename_component(_cudart_dir "${TorchLib_CUDART_LIBRARY}" DIRECTORY)
    add_library(scalemark::nccl INTERFACE IMPORTED)
    target_include_directories(scalemark::nccl SYSTEM INTERFACE
      "${TorchLib_CUDA_INCLUDE_DIR}" "${TorchLib_NCCL_INCLUDE_DIR}" "${TorchLib_CUDA_CRT_INCLUDE_DIR}"
      "${TorchLib_CCCL_INCLUDE_DIR}")
    target_link_options(scalemark::nccl INTERFACE "LINKER:-rpath,${_nccl_dir}" "LINKER:-rpath,${_cudart_dir}")
    target_link_libraries(scalemark::nccl INTERFACE "${TorchLib_NCCL_LIBRARY}" "${TorchLib_CUDART_LIBRARY}")
    add_library(scalemark::torch_cuda INTERFACE IMPORTED)
    target_link_libraries(scalemark::torch_cuda INTERFACE scalemark::torch
      "${TorchLib_CUDA_LIBRARY}" "${TorchLib_C10_CUDA_LIBRARY}" scalemark::nccl)
  endif()
endif()
mark_as_advanced(TorchLib_INCLUDE_DIR TorchLib_CPU_LIBRARY TorchLib_C10_LIBRARY TorchLib_CUDA_INCLUDE_DIR
  TorchLib_CUDA_CRT_INCLUDE_DIR TorchLib_CCCL_INCLUDE_DIR
  TorchLib_NCCL_INCLUDE_DIR TorchLib_CUDA_LIBRARY TorchLib_C10_CUDA_LIBRARY TorchLib_NCCL_LIBRARY TorchLib_CUDART_LIBRARY)
