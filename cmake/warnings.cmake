# Warnings and sanitizers of our own code. Others' headers are SYSTEM includes and stay silent.
add_library(stepop_warnings INTERFACE)
target_compile_options(stepop_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-qual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in std::string's own operator+ (GCC bug 105329).
  target_compile_options(stepop_warnings INTERFACE -Wno-restrict)
endif()

if(STEPOP_SANITIZE)
  add_compile_options(-fsanitize=${STEPOP_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${STEPOP_SANITIZE})
  if(STEPOP_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers GCC takes std::regex for uninitialized (GCC bug 105562).
    target_compile_options(stepop_warnings INTERFACE -Wno-maybe-uninitialized)
    if(STEPOP_SANITIZE STREQUAL "thread")
      # It does not follow fences; LibTorch's headers have one, for Python's objects alone.
      target_compile_options(stepop_warnings INTERFACE -Wno-tsan)
    endif()
  endif()
endif()
