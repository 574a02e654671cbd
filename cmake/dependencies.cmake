# Everything that stepop is built with, as one target: stepop_dependencies. Nothing is downloaded
# here; CMakeLists.txt ends the configure step with what this file puts into stepop_missing.

if(NOT cxx_std_20 IN_LIST CMAKE_CXX_COMPILE_FEATURES OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11) OR
   (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14))
  set(stepop_missing "a compiler with C++20, GCC 11 or Clang 14 and newer (${CMAKE_CXX_COMPILER} \
is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; name another by CXX, or none)")
  return()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/libtorch.cmake)
if(NOT TORCH_ROOT)
  list(APPEND stepop_missing "LibTorch")
else()
  set(version_file ${TORCH_ROOT}/share/cmake/Torch/TorchConfigVersion.cmake)
  if(EXISTS ${version_file})
    file(STRINGS ${version_file} version REGEX "PACKAGE_VERSION \"")
    string(REGEX MATCH "[0-9]+\\.[0-9]+[.0-9]*" Torch_VERSION "${version}")
    if(Torch_VERSION VERSION_LESS 2.11)  # the oldest that was compiled: README.md
      list(APPEND stepop_missing
           "LibTorch 2.11 or newer (${TORCH_ROOT} is ${Torch_VERSION}; name another by \
CMAKE_PREFIX_PATH, or none)")
    endif()
  endif()
endif()

# LibTorch before 2.13 has functions whose names Clang 18 and newer make otherwise than GCC, which made LibTorch.
set(STEPOP_CLANG_FLAGS "")
if(TORCH_ROOT)
  file(STRINGS ${TORCH_ROOT}/include/ATen/core/TensorBase.h constrained REGEX "enable_if_t<!std::is_const_v<T>, int> = 0>")
  if(constrained)
    set(STEPOP_CLANG_FLAGS -fclang-abi-compat=16)
  endif()
endif()

# One line a package: its name for CMake, what it is, and what the message calls it.
macro(stepop_require package name)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    list(APPEND stepop_missing "${name}")
  endif()
endmacro()
stepop_require(yaml-cpp "yaml-cpp (libyaml-cpp-dev)")
stepop_require(HDF5 "HDF5 (libhdf5-dev)" COMPONENTS C)
stepop_require(nlohmann_json "nlohmann-json (nlohmann-json3-dev)")
stepop_require(PNG "libpng (libpng-dev)")
stepop_require(JPEG "libjpeg (libjpeg-dev)")
stepop_require(ZLIB "zlib (zlib1g-dev)")
stepop_require(Threads "the threads library (libc6-dev)")

macro(stepop_require_header variable header name)
  find_path(${variable} ${header} ${ARGN})
  if(NOT ${variable})
    list(APPEND stepop_missing "${name}")
  endif()
endmacro()
macro(stepop_require_library variable header library name)
  stepop_require_header(${variable}_INCLUDE_DIR ${header} "${name}")
  find_library(${variable}_LIBRARY ${library})
  if(${variable}_INCLUDE_DIR AND NOT ${variable}_LIBRARY)
    list(APPEND stepop_missing "${name}")
  endif()
endmacro()
stepop_require_library(PCRE2 pcre2.h pcre2-8 "PCRE2 (libpcre2-dev)")
stepop_require_library(UTF8PROC utf8proc.h utf8proc "utf8proc (libutf8proc-dev)")
stepop_require_header(CXXOPTS_INCLUDE_DIR cxxopts.hpp "cxxopts (libcxxopts-dev)")
stepop_require_header(XXHASH_INCLUDE_DIR xxhash.h "xxHash (libxxhash-dev)")
# LibTorch carries a fmt of its own on its include path; Debian's serves a LibTorch without one.
stepop_require_header(FMT_INCLUDE_DIR fmt/format.h "fmt (libfmt-dev)" HINTS ${TORCH_ROOT}/include)
# For training with several processes. The Python package of LibTorch lacks these headers of its Gloo.
find_path(GLOO_INCLUDE_DIR gloo/algorithm.h HINTS ${TORCH_ROOT}/include)
if(GLOO_INCLUDE_DIR AND EXISTS ${TORCH_ROOT}/include/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp)
  set(STEPOP_DISTRIBUTED ON)
  message(STATUS "several processes: c10d with Gloo")
else()
  set(STEPOP_DISTRIBUTED OFF)
  message(STATUS "several processes: not in this build, which lacks gloo's headers (libgloo-dev)")
endif()
# For NCCL: the Python packages that a LibTorch with CUDA needs have these headers, but for nvidia-cuda-crt's.
set(STEPOP_NCCL_INCLUDE_DIRS "")
if(STEPOP_DISTRIBUTED AND EXISTS ${TORCH_ROOT}/lib/libtorch_cuda.so)
  file(GLOB nvidia_folders ${TORCH_ROOT}/../nvidia/*/include)
  foreach(header nccl.h cuda_runtime.h cublas_v2.h cusparse.h cusolverDn.h crt/host_config.h)
    find_path(header_folder ${header} HINTS ${nvidia_folders} /usr/local/cuda/include NO_CACHE)
    if(NOT header_folder)
      list(APPEND nccl_missing ${header})
    endif()
    list(APPEND STEPOP_NCCL_INCLUDE_DIRS ${header_folder})
    unset(header_folder)
  endforeach()
  list(REMOVE_DUPLICATES STEPOP_NCCL_INCLUDE_DIRS)
  if(nccl_missing)
    set(STEPOP_NCCL_INCLUDE_DIRS "")
    list(JOIN nccl_missing ", " nccl_missing)
    message(STATUS "between GPUs: Gloo; NCCL is not in this build, which lacks ${nccl_missing} (pip: nvidia-cuda-crt)")
  else()
    message(STATUS "between GPUs: Gloo, NCCL")
  endif()
endif()
if(STEPOP_BUILD_TESTS)
  stepop_require_header(DOCTEST_INCLUDE_DIR doctest/doctest.h "doctest (doctest-dev)")
endif()
if(stepop_missing)
  return()
endif()

set(TORCH_INCLUDE_DIRS ${TORCH_ROOT}/include ${TORCH_ROOT}/include/torch/csrc/api/include)
add_library(stepop_dependencies INTERFACE)
target_include_directories(stepop_dependencies SYSTEM INTERFACE
  ${TORCH_INCLUDE_DIRS} ${HDF5_INCLUDE_DIRS} ${CXXOPTS_INCLUDE_DIR} ${XXHASH_INCLUDE_DIR}
  ${YAML_CPP_INCLUDE_DIR} ${PCRE2_INCLUDE_DIR} ${UTF8PROC_INCLUDE_DIR})
if(STEPOP_DISTRIBUTED)
  target_include_directories(stepop_dependencies SYSTEM INTERFACE ${GLOO_INCLUDE_DIR})
endif()
# libtorch.so itself is empty: it loads the library of each device that LibTorch was built for.
# Before it the C++ library: libtorch.so of PyPI's 2.11 brings a std::filesystem of its own, and remove_all of it crashes.
target_link_libraries(stepop_dependencies INTERFACE
  -Wl,--push-state,--no-as-needed -lstdc++ ${TORCH_ROOT}/lib/libtorch.so -Wl,--pop-state
  ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so
  yaml-cpp ${HDF5_C_LIBRARIES} nlohmann_json::nlohmann_json PNG::PNG JPEG::JPEG ZLIB::ZLIB
  ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
if(EXISTS ${TORCH_ROOT}/lib/libtorch_cuda.so)
  # Its CUDA libraries are other Python packages, which it finds itself when it is loaded.
  target_link_options(stepop_dependencies INTERFACE -Wl,--allow-shlib-undefined)
  # For graphs of CUDA: the headers of its runtime. Where pip brought LibTorch, Triton has them all.
  find_path(CUDA_RUNTIME_INCLUDE_DIR crt/host_config.h
    PATHS /usr/local/cuda/include ${TORCH_ROOT}/../triton/backends/nvidia/include NO_DEFAULT_PATH)
  if(CUDA_RUNTIME_INCLUDE_DIR)
    target_include_directories(stepop_dependencies SYSTEM INTERFACE ${CUDA_RUNTIME_INCLUDE_DIR})
    target_compile_definitions(stepop_dependencies INTERFACE STEPOP_CUDA_GRAPHS)
    target_link_libraries(stepop_dependencies INTERFACE ${TORCH_ROOT}/lib/libtorch_cuda.so ${TORCH_ROOT}/lib/libc10_cuda.so)
  else()
    message(STATUS "cuda_graph: not in this build, which lacks the headers of CUDA (crt/host_config.h)")
  endif()
endif()
target_compile_definitions(stepop_dependencies INTERFACE ${HDF5_DEFINITIONS})
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(stepop_dependencies INTERFACE ${STEPOP_CLANG_FLAGS})
endif()

# A faster malloc, where there is one: a network's step allocates hundreds of tensors, of which
# glibc's loses up to a quarter of the time of small steps. Programs link it; sanitizers bring their own.
add_library(stepop_malloc INTERFACE)
find_library(TCMALLOC_LIBRARY NAMES tcmalloc_minimal libtcmalloc_minimal.so.4)
if(STEPOP_SANITIZE)
  message(STATUS "malloc: the sanitizer's")
elseif(TCMALLOC_LIBRARY)
  message(STATUS "malloc: ${TCMALLOC_LIBRARY}")
  target_link_libraries(stepop_malloc INTERFACE
    -Wl,--push-state,--no-as-needed ${TCMALLOC_LIBRARY} -Wl,--pop-state)
else()
  message(STATUS "malloc: the system's; small steps are faster with tcmalloc (libtcmalloc-minimal4)")
endif()
