# What your own sources are compiled with: libstepop.json, beside libstepop.so; and the precompiled
# header that makes it quick.

# A JSON list of texts.
function(stepop_json_list out)
  set(items "")
  foreach(item ${ARGN})
    string(REPLACE "\\" "\\\\" item "${item}")
    string(REPLACE "\"" "\\\"" item "${item}")
    list(APPEND items "\"${item}\"")
  endforeach()
  list(JOIN items ", " items)
  set(${out} "[${items}]" PARENT_SCOPE)
endfunction()

# Where no Clang is installed, and for OpenMP, GCC compiles user code, whatever compiled stepop.
find_program(STEPOP_USER_COMPILER NAMES g++ ${CMAKE_CXX_COMPILER})
mark_as_advanced(STEPOP_USER_COMPILER)

# Writes libstepop.json for headers in `includes` and LibTorch's in `torch_includes`.
function(stepop_write_settings path compiler includes torch_includes headers templates)
  set(flags -std=c++20 ${rounding_flags} "-DSTEPOP_VERSION=\"${PROJECT_VERSION}\"")
  set(folders ${includes} ${torch_includes})
  list(REMOVE_DUPLICATES folders)
  list(REMOVE_ITEM folders /usr/include)  # named again, it hides the compiler's own headers
  foreach(folder ${folders})
    list(APPEND flags -isystem ${folder})
  endforeach()
  stepop_json_list(flags ${flags})
  stepop_json_list(clang_flags ${STEPOP_CLANG_FLAGS})
  stepop_json_list(includes ${includes})
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT [[{
  "version": "@PROJECT_VERSION@",
  "compiler": "@compiler@",
  "flags": @flags@,
  "clang_flags": @clang_flags@,
  "includes": @includes@,
  "headers": "@headers@",
  "templates": "@templates@"
}
]])
endfunction()

stepop_write_settings(${CMAKE_BINARY_DIR}/libstepop.json ${STEPOP_USER_COMPILER}
  "${CMAKE_SOURCE_DIR}/runtime/include;${CMAKE_SOURCE_DIR}/iterators/include;${CMAKE_SOURCE_DIR}" "${TORCH_INCLUDE_DIRS};${FMT_INCLUDE_DIR}"
  "{here}/stepop_headers" "${CMAKE_SOURCE_DIR}/iterators/templates")
