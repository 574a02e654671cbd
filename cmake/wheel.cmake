# What the wheel has beside the component `stepop` of an installation, as the component `wheel`; its
# prefix is the package folder site-packages/stepop. cmake/wheel/backend.py makes the wheel of both.
#
# LibTorch is that of the package `torch`, which lies beside. The system's libraries come along, so
# that the wheel runs where their packages are missing.
set(wheel_torch ${lib_to_prefix}/../torch)

add_library(libstepop_wheel SHARED EXCLUDE_FROM_ALL ${library_objects})
target_link_libraries(libstepop_wheel PRIVATE stepop_dependencies)
if(TARGET stepop_nccl)  # of the component `stepop`
  add_dependencies(libstepop_wheel stepop_nccl)
endif()
# RPATH and not RUNPATH: it also counts for what the system's libraries need themselves.
target_link_options(libstepop_wheel PRIVATE -Wl,--no-undefined -Wl,--disable-new-dtags)
set_target_properties(libstepop_wheel PROPERTIES OUTPUT_NAME stepop
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/install/wheel
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;$ORIGIN/${wheel_torch}/lib")
install(FILES $<TARGET_FILE:libstepop_wheel> DESTINATION ${lib} COMPONENT wheel EXCLUDE_FROM_ALL)

add_executable(stepop_program_wheel EXCLUDE_FROM_ALL runtime/tools/start/main.cpp)
target_link_libraries(stepop_program_wheel PRIVATE stepop_malloc ${all_tools} libstepop_wheel stepop_warnings)
target_link_options(stepop_program_wheel PRIVATE -Wl,--disable-new-dtags)
set_target_properties(stepop_program_wheel PROPERTIES OUTPUT_NAME stepop
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/install/wheel/stepop_program
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/..;$ORIGIN/../${wheel_torch}/lib")
install(PROGRAMS $<TARGET_FILE:stepop_program_wheel> DESTINATION ${lib}/stepop_program COMPONENT wheel
        EXCLUDE_FROM_ALL)
stepop_add_front(stepop_wheel stepop_program_wheel EXCLUDE_FROM_ALL)
target_link_options(stepop_wheel PRIVATE -Wl,--disable-new-dtags)
set_target_properties(stepop_wheel PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/install/wheel
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../${lib};$ORIGIN/../../torch/lib")
install(PROGRAMS $<TARGET_FILE:stepop_wheel> DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT wheel
        EXCLUDE_FROM_ALL)
install(DIRECTORY eval_out/python/stepop/ DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
        PATTERN __pycache__ EXCLUDE)

# The compiler by its name: it is that of another machine.
get_filename_component(compiler_name ${STEPOP_USER_COMPILER} NAME)
stepop_write_installed(wheel ${compiler_name} "{here}/${wheel_torch}")
stepop_install_settings(wheel COMPONENT wheel EXCLUDE_FROM_ALL)
configure_file(cmake/wheel/METADATA.in ${CMAKE_BINARY_DIR}/install/wheel/METADATA @ONLY)

# Left to the system: the C library and the compiler's own, which its packages bring.
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES
    LIBRARIES \"$<TARGET_FILE:libstepop_wheel>\"
    EXECUTABLES \"$<TARGET_FILE:stepop_wheel>\" \"$<TARGET_FILE:stepop_program_wheel>\"
    PRE_EXCLUDE_REGEXES [[^lib(stepop|torch|c10)]] [[^ld-linux]]
      [[^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)[.]so]]
    RESOLVED_DEPENDENCIES_VAR libraries)
  include([[${CMAKE_SOURCE_DIR}/cmake/licence_texts.cmake]])
  stepop_copy_licence_texts(\"${licences}\" \${libraries})
  foreach(library \${libraries})
    get_filename_component(name \${library} NAME)
    file(REAL_PATH \${library} library)
    file(COPY_FILE \${library} \${CMAKE_INSTALL_PREFIX}/${lib}/\${name})
  endforeach()" COMPONENT wheel EXCLUDE_FROM_ALL)
