# The files of the report's page become one source: runtime/tools/report/page.h gives them back.
set(page_source ${CMAKE_BINARY_DIR}/generated/report_page.cpp)
file(GLOB page_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/tools/report/page/*)
set(page_code "#include \"runtime/tools/report/page.h\"\n\nstd::string_view stepop::page_file(std::string_view name) {\n")
foreach(page_file ${page_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_file})
  get_filename_component(page_name ${page_file} NAME)
  file(READ ${page_file} page_text)
  string(APPEND page_code "  if (name == \"${page_name}\") return R\"page!(${page_text})page!\";\n")
endforeach()
string(APPEND page_code "  return {};\n}\n")
file(CONFIGURE OUTPUT ${page_source} CONTENT "@page_code@" @ONLY)

# The script of Python datasets: runtime/data/python/python_server.h gives it back.
set(python_source ${CMAKE_BINARY_DIR}/generated/python_worker.cpp)
set(python_text "")
foreach(part messages building names values worker stream_worker server)  # one after another, they are one script
  set(python_part ${CMAKE_SOURCE_DIR}/runtime/data/python/script/${part}.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${python_part})
  file(READ ${python_part} part_text)
  string(APPEND python_text "${part_text}\n\n")
endforeach()
set(python_code "#include \"runtime/data/python/python_server.h\"\n\nconst char* stepop::python_worker_script() {\n  return R\"python!(${python_text})python!\";\n}\n")
file(CONFIGURE OUTPUT ${python_source} CONTENT "@python_code@" @ONLY)
