# Everything that stepop is built with, as one target: stepop_dependencies. Nothing is downloaded
# here; what is missing ends the configure step with one sentence.

function(stepop_missing what)
  message(FATAL_ERROR "stepop: ${what} is missing: run `make deps`, which installs it.")
endfunction()

# LibTorch: what CMake finds (CMAKE_PREFIX_PATH, Torch_DIR) wins; else the Python package `torch`
# of the tree's own virtual environment, else of the python3 on the path.
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)  # it warns that parts are missing which we do not use
find_package(Torch QUIET)
if(NOT Torch_FOUND)
  foreach(python ${CMAKE_SOURCE_DIR}/.venv/bin/python3 python3)
    execute_process(
      COMMAND ${python} -c "import torch.utils; print(torch.utils.cmake_prefix_path, end='')"
      OUTPUT_VARIABLE prefix ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      find_package(Torch QUIET PATHS ${prefix} NO_DEFAULT_PATH)
    endif()
    if(Torch_FOUND)
      break()
    endif()
  endforeach()
endif()
unset(CMAKE_MESSAGE_LOG_LEVEL)
if(NOT Torch_FOUND)
  stepop_missing("LibTorch")
endif()
if(Torch_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR "stepop: LibTorch ${Torch_VERSION} at ${TORCH_INSTALL_PREFIX} is too old, "
                      "2.6 is needed: run `make deps`, or set CMAKE_PREFIX_PATH to a newer one.")
endif()

find_package(yaml-cpp QUIET)
if(NOT yaml-cpp_FOUND)
  stepop_missing("yaml-cpp (libyaml-cpp-dev)")
endif()
find_package(HDF5 QUIET COMPONENTS C)
if(NOT HDF5_FOUND)
  stepop_missing("HDF5 (libhdf5-dev)")
endif()
find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  stepop_missing("nlohmann-json (nlohmann-json3-dev)")
endif()
foreach(package PNG JPEG ZLIB Threads)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    string(TOLOWER ${package} name)
    stepop_missing("lib${name}")
  endif()
endforeach()
find_path(CXXOPTS_INCLUDE_DIR cxxopts.hpp)
if(NOT CXXOPTS_INCLUDE_DIR)
  stepop_missing("cxxopts (libcxxopts-dev)")
endif()
# LibTorch carries a fmt of its own on its include path; Debian's serves a LibTorch without one.
find_path(FMT_INCLUDE_DIR fmt/format.h HINTS ${TORCH_INCLUDE_DIRS})
if(NOT FMT_INCLUDE_DIR)
  stepop_missing("fmt (libfmt-dev)")
endif()

add_library(stepop_dependencies INTERFACE)
target_include_directories(stepop_dependencies SYSTEM INTERFACE
  ${TORCH_INCLUDE_DIRS} ${HDF5_INCLUDE_DIRS} ${CXXOPTS_INCLUDE_DIR} ${YAML_CPP_INCLUDE_DIR})
target_link_libraries(stepop_dependencies INTERFACE
  ${TORCH_LIBRARIES} yaml-cpp ${HDF5_C_LIBRARIES} nlohmann_json::nlohmann_json PNG::PNG JPEG::JPEG
  ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(stepop_dependencies INTERFACE FMT_HEADER_ONLY ${HDF5_DEFINITIONS})
separate_arguments(torch_flags NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(stepop_dependencies INTERFACE ${torch_flags})
