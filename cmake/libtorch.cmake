# Where LibTorch is: sets TORCH_ROOT, the folder with LibTorch's include/ and lib/, or leaves it
# empty. `cmake -P cmake/libtorch.cmake` prints a LibTorch that the user named, for `make deps`.
#
# Only its place is looked up. Its own TorchConfig.cmake wants a whole CUDA toolkit when LibTorch
# was built with CUDA, as the `torch` of PyPI is, and warns of parts that we do not use.

# The first folder of `places` that holds a LibTorch, as CMAKE_PREFIX_PATH, Torch_DIR and the
# Python package name it.
function(stepop_find_libtorch places)
  set(TORCH_ROOT "" PARENT_SCOPE)
  foreach(place ${places})
    foreach(suffix "" Torch share/cmake/Torch lib/cmake/Torch)
      get_filename_component(folder "${place}/${suffix}" ABSOLUTE)
      if(EXISTS ${folder}/TorchConfig.cmake)
        get_filename_component(root ${folder}/../../.. ABSOLUTE)
        set(TORCH_ROOT ${root} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# What the user named, in the order of find_package.
set(libtorch_places ${Torch_ROOT} $ENV{Torch_ROOT} ${CMAKE_PREFIX_PATH} ${Torch_DIR} $ENV{Torch_DIR})
file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" prefixes)
list(APPEND libtorch_places ${prefixes})
stepop_find_libtorch("${libtorch_places}")

if(CMAKE_SCRIPT_MODE_FILE)
  if(TORCH_ROOT)
    message("${TORCH_ROOT}")
  endif()
  return()
endif()

# Else the Python package `torch`, of the tree's own virtual environment or of the python3 on the
# path; else the system's.
foreach(python ${CMAKE_SOURCE_DIR}/.venv/bin/python3 python3)
  if(NOT TORCH_ROOT)
    execute_process(
      COMMAND ${python} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0], end='')"
      OUTPUT_VARIABLE package ERROR_QUIET)
    stepop_find_libtorch("${package}")
  endif()
endforeach()
if(NOT TORCH_ROOT)
  stepop_find_libtorch("/usr/local;/usr")
endif()
