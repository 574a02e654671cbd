# `cmake --install build --prefix P` and `make package`: the program, its library, its headers, the
# configs, templates, and a CMake package for projects with code of their own. What does not depend on
# where LibTorch lies is the component `stepop`, which the wheel has as well.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(lib ${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH lib_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" lib_to_prefix "${lib_to_prefix}")

# A LibTorch that `make deps` brought is a part of the tree and comes along; a user's own stays where
# it is.
cmake_path(IS_PREFIX CMAKE_SOURCE_DIR ${TORCH_ROOT} brings_torch)
if(brings_torch)
  set(torch_folder "{here}/stepop/torch")
  set(torch_rpath "$ORIGIN/stepop/torch/lib")
  set(program_rpath "$ORIGIN/../${lib}/stepop/torch/lib")
  install(DIRECTORY ${TORCH_ROOT}/include DESTINATION ${lib}/stepop/torch)
  file(GLOB torch_libraries ${TORCH_ROOT}/lib/lib*.so*)
  list(FILTER torch_libraries EXCLUDE REGEX
       "/lib(torch_python|torchbind_test|jitbackend_test|backend_with_compiler|aoti_custom_ops|shm)[.]")
  install(FILES ${torch_libraries} DESTINATION ${lib}/stepop/torch/lib)
  # One with CUDA looks for NVIDIA's libraries beside its own folder, where pip lays them.
  if(IS_DIRECTORY ${TORCH_ROOT}/../nvidia)
    install(DIRECTORY ${TORCH_ROOT}/../nvidia DESTINATION ${lib}/stepop
            FILES_MATCHING PATTERN "lib*.so*" PATTERN include EXCLUDE)
  endif()
  file(GLOB torch_packages ${TORCH_ROOT}/../torch-*.dist-info ${TORCH_ROOT}/../nvidia*.dist-info)
  install(DIRECTORY ${torch_packages} DESTINATION share/stepop/LICENSES
          FILES_MATCHING REGEX "dist-info/licenses/|/LICEN[CS]E|/License|/NOTICE")
else()
  set(torch_folder ${TORCH_ROOT})
  set(torch_rpath ${TORCH_ROOT}/lib)
  set(program_rpath ${torch_rpath})
endif()

set_target_properties(stepop PROPERTIES INSTALL_RPATH "$ORIGIN/../${lib};${program_rpath}"
                                        INSTALL_RPATH_USE_LINK_PATH OFF)
string(REPLACE "$ORIGIN" "$ORIGIN/.." torch_rpath_below "${torch_rpath}")
set_target_properties(stepop_program PROPERTIES INSTALL_RPATH "$ORIGIN/..;${torch_rpath_below}"
                                                INSTALL_RPATH_USE_LINK_PATH OFF)
set_target_properties(libstepop PROPERTIES INSTALL_RPATH "${torch_rpath}" INSTALL_RPATH_USE_LINK_PATH OFF)
install(TARGETS stepop RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS stepop_program RUNTIME DESTINATION ${lib}/stepop_program)
install(TARGETS libstepop LIBRARY DESTINATION ${lib})
# The last is the wheel's.
set_target_properties(stepop_probe_hdf5 PROPERTIES INSTALL_RPATH
                      "$ORIGIN;${torch_rpath};$ORIGIN/${lib_to_prefix}/../torch/lib"
                      INSTALL_RPATH_USE_LINK_PATH OFF)
install(TARGETS stepop_probe_hdf5 RUNTIME DESTINATION ${lib} COMPONENT stepop)
if(TARGET stepop_nccl)
  install(TARGETS stepop_nccl LIBRARY DESTINATION ${lib} COMPONENT stepop)
endif()

# The public headers, and of the private ones those that they include. None is a tool's.
file(GLOB public_headers RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
     runtime/include/stepop/*.h iterators/include/stepop/*.h)
install(FILES ${public_headers} DESTINATION include/stepop COMPONENT stepop)
set(headers "")
while(public_headers)
  list(POP_FRONT public_headers header)
  file(STRINGS ${header} lines REGEX "^#include \"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    if(NOT included IN_LIST headers)
      if(included MATCHES "^runtime/tools/")
        message(FATAL_ERROR "${header} is installed and includes ${included}, which is not")
      endif()
      list(APPEND headers ${included})
      list(APPEND public_headers ${included})
    endif()
  endforeach()
endwhile()
# An include that comes to one of them changes the list.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/stepop/${folder} COMPONENT stepop)
endforeach()
# The pages lie to each other as in the tree, with what they link to, so that links lead somewhere.
install(DIRECTORY configs DESTINATION share/stepop COMPONENT stepop)
install(DIRECTORY iterators/templates DESTINATION share/stepop/iterators COMPONENT stepop)
file(GLOB_RECURSE readmes RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
     runtime/*.md eval_out/*.md models/*.md iterators/*.md tests/*.md configs/*.md)
set(pages README.md CONTRIBUTING.md CHANGELOG.md cmake/README.md cmake/licences/THIRD_PARTY.md ${readmes})
foreach(page ${pages})
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION share/stepop/${folder} COMPONENT stepop)
  file(READ ${page} text)
  string(REPLACE "](" "@LINK@(" text "${text}")
  string(REGEX REPLACE "[][;]" " " text "${text}")  # which lists of CMake do not bear
  string(REGEX MATCHALL "@LINK@\\([^)# \n]+" links "${text}")
  foreach(link ${links})
    string(REPLACE "@LINK@(" "" link ${link})
    get_filename_component(target ${CMAKE_SOURCE_DIR}/${folder}/${link} ABSOLUTE)
    file(RELATIVE_PATH target ${CMAKE_SOURCE_DIR} ${target})
    get_filename_component(target_folder ${target} DIRECTORY)
    if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/${target})
      if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${target}/README.md)
        install(DIRECTORY ${target} DESTINATION share/stepop/${target_folder} COMPONENT stepop)
      endif()
    elseif(EXISTS ${CMAKE_SOURCE_DIR}/${target} AND NOT target IN_LIST pages)
      install(FILES ${target} DESTINATION share/stepop/${target_folder} COMPONENT stepop)
    endif()
  endforeach()
endforeach()
# What a tree calls build/stepop is on the PATH.
install(CODE "
  file(GLOB_RECURSE pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/stepop/*.md\")
  foreach(page \${pages})
    file(READ \${page} text)
    string(REGEX REPLACE \"build/stepop([^_a-z])\" \"stepop\\\\1\" text \"\${text}\")
    file(WRITE \${page} \"\${text}\")
  endforeach()" COMPONENT stepop)

# Licences, of which THIRD_PARTY.md says what is where: the texts of the headers that are compiled in, with
# those of the wheel's libraries, and Debian's file about a package. LibTorch's texts come with it, above.
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp)
set(compiled_in "")
foreach(header ${NLOHMANN_JSON_INCLUDE_DIR}/nlohmann/json.hpp ${CXXOPTS_INCLUDE_DIR}/cxxopts.hpp
               ${XXHASH_INCLUDE_DIR}/xxhash.h ${FMT_INCLUDE_DIR}/fmt/format.h
               ${GLOO_INCLUDE_DIR}/gloo/algorithm.h)
  cmake_path(IS_PREFIX TORCH_ROOT ${header} is_of_torch)
  if(EXISTS ${header} AND NOT (brings_torch AND is_of_torch))
    list(APPEND compiled_in ${header})
  endif()
endforeach()
set(licences "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/stepop/LICENSES")
install(CODE "
  file(REMOVE \"${licences}/libraries.txt\")
  include([[${CMAKE_SOURCE_DIR}/cmake/licence_texts.cmake]])
  set(files [[${compiled_in}]])
  stepop_copy_licence_texts(\"${licences}\" \${files})" COMPONENT stepop)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS LICENSE)
file(READ LICENSE content)
string(REGEX REPLACE "^MIT License\n\n" "" content "${content}")
string(STRIP "${content}" content)
string(REPLACE "\n" "\n " content " ${content}")
string(REPLACE "\n \n" "\n .\n" text_of_LICENSE "${content}")
configure_file(cmake/copyright.in ${CMAKE_BINARY_DIR}/install/copyright @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/install/copyright DESTINATION share/doc/stepop)

# The Python package. The program finds stepop.eval here; the wheel has it in the package itself.
install(DIRECTORY eval_out/python/stepop DESTINATION share/stepop/eval_out/python PATTERN __pycache__ EXCLUDE)
install(FILES eval_out/python/stepop_eval.py DESTINATION share/stepop/eval_out/python)

# What names LibTorch's folder, written to build/install/<kind>/: libstepop.json and the CMake package.
function(stepop_write_installed kind compiler torch_folder)
  set(prefix "{here}/${lib_to_prefix}")
  string(REPLACE ${TORCH_ROOT} ${torch_folder} torch_includes
         "${TORCH_INCLUDE_DIRS};${FMT_INCLUDE_DIR}")
  set(folder ${CMAKE_BINARY_DIR}/install/${kind})
  stepop_write_settings(${folder}/libstepop.json ${compiler}
    "${prefix}/include;${prefix}/include/stepop" "${torch_includes}" "{here}/stepop/headers"
    "${prefix}/share/stepop/iterators/templates")
  string(REPLACE "{here}" "\${stepop_LIB}" torch_folder "${torch_folder}")
  string(REPLACE "{here}" "\${stepop_LIB}" torch_includes "${torch_includes}")
  configure_package_config_file(cmake/stepopConfig.cmake.in ${folder}/stepopConfig.cmake
    INSTALL_DESTINATION ${lib}/cmake/stepop NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${folder}/stepopConfigVersion.cmake COMPATIBILITY ExactVersion)
endfunction()

function(stepop_install_settings kind)
  set(folder ${CMAKE_BINARY_DIR}/install/${kind})
  install(FILES ${folder}/libstepop.json DESTINATION ${lib} ${ARGN})
  install(FILES ${folder}/stepopConfig.cmake ${folder}/stepopConfigVersion.cmake
          DESTINATION ${lib}/cmake/stepop ${ARGN})
endfunction()

stepop_write_installed(prefix ${STEPOP_USER_COMPILER} "${torch_folder}")
stepop_install_settings(prefix)

# The headers are precompiled where they will be used; in a package that is for another machine, the
# first compile there does it.
set(program "\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/stepop")
install(CODE "
  if(\"\$ENV{DESTDIR}\" STREQUAL \"\" AND NOT CMAKE_INSTALL_PREFIX MATCHES \"_CPack_Packages\")
    message(STATUS \"Precompiling the headers for code of your own\")
    execute_process(COMMAND \"${program}\" prepare RESULT_VARIABLE failed)
    if(failed)
      message(WARNING \"stepop prepare failed (\${failed}): the first compile of your own code will do it\")
    endif()
  endif()")

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME stepop)
set(CPACK_PACKAGE_VENDOR "the stepop developers")
set(CPACK_PACKAGE_CONTACT "the stepop developers")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
configure_file(cmake/package.cmake.in ${CMAKE_BINARY_DIR}/package.cmake @ONLY)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/package.cmake)
include(CPack)
