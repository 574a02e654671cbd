# The program that users call: it does what needs no tensor without LibTorch, and becomes the whole program for
# everything else (runtime/tools/front/README.md). Of LibTorch it loads libc10.so alone, which takes 2 ms.

# Texts that are the same in each run are made here, by the commands that print them.
add_executable(stepop_make_texts EXCLUDE_FROM_ALL runtime/tools/front/make_texts.cpp)
target_link_libraries(stepop_make_texts PRIVATE ${all_tools} libstepop stepop_warnings)
set(made_texts ${CMAKE_BINARY_DIR}/generated/made_texts.cpp)
add_custom_command(OUTPUT ${made_texts} DEPENDS stepop_make_texts libstepop VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ${CMAKE_CROSSCOMPILING_EMULATOR}
          $<TARGET_FILE:stepop_make_texts> > ${made_texts})

# What its commands are made of. The linker drops the functions that they do not call, and with them what needs
# LibTorch; it reports a file that is missing here, and a function with tensors that they do call, as undefined.
set(front_files
  runtime/core/base/ error fmt json_text key_hash name_pattern nearest number_text regular_expression shell_text
    shown_text text text_table
  runtime/core/value/ comparison difference value yaml_reader yaml_scalar yaml_text yaml_writer
  runtime/core/config/ arithmetic config_files merge read_pattern references resolve
  runtime/core/components/ foreign_names
  runtime/core/formats/ csv_file json_file safetensors safetensors_header safetensors_reader
  runtime/core/log/ console metric_direction metrics_file
  runtime/core/system/ append_file atomic_file checksum file_calls file_lock folders owner read_file
  eval_out/read/ find_evaluations
  runtime/train/checkpoint/ checkpoint checkpoint_folder progress
  runtime/train/run/ data_files provenance run_directory run_lock run_summary start_record thread_wait
  runtime/train/when/ logged_metric
  runtime/tools/cli/ arguments command command_line config_groups flags help remedy standard_streams
  runtime/tools/start/ run_starts
  runtime/tools/components/ config_paths
  runtime/tools/code/ build_settings
  runtime/tools/front/ config_command library_folders main new_parts
  runtime/tools/project/ new_command
  runtime/tools/report/ code_changes config_table metric_choice run_curves
  runtime/tools/runs/ checkpoints_command compare_command compare_rows compare_states run_filter runs_command
  runtime/tools/sweep/ sweep_file sweep_plan)
set(light_sources "")  # of libstepop.so as well, and compiled once
set(light_tool_sources "")  # of the tools as well
set(front_sources "")
foreach(file ${front_files})
  if(file MATCHES "/$")
    set(folder ${file})
  elseif(folder STREQUAL "runtime/tools/front/")
    list(APPEND front_sources ${CMAKE_SOURCE_DIR}/${folder}${file}.cpp)
  elseif(folder MATCHES "^runtime/tools/")
    list(APPEND light_tool_sources ${CMAKE_SOURCE_DIR}/${folder}${file}.cpp)
  else()
    list(APPEND light_sources ${CMAKE_SOURCE_DIR}/${folder}${file}.cpp)
  endif()
endforeach()
list(REMOVE_ITEM engine_sources ${light_sources})
list(REMOVE_ITEM tool_sources ${light_tool_sources})
add_library(stepop_light OBJECT ${light_sources})
add_library(stepop_light_tools OBJECT ${light_tool_sources})
add_library(stepop_front OBJECT ${front_sources})
foreach(target stepop_light stepop_light_tools stepop_front)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
endforeach()

# stepop_add_front(<target> <the whole program's target> [EXCLUDE_FROM_ALL])
function(stepop_add_front target program)
  add_executable(${target} ${ARGN} ${made_texts} $<TARGET_OBJECTS:stepop_front>
                 $<TARGET_OBJECTS:stepop_light_tools> $<TARGET_OBJECTS:stepop_light>)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  add_dependencies(${target} ${program})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME stepop)
  target_link_options(${target} PRIVATE -Wl,--gc-sections)
  target_link_libraries(${target} PRIVATE ${TORCH_ROOT}/lib/libc10.so yaml-cpp ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY}
    Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
