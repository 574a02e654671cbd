# How long the slower tests take, in seconds, on two cores beside two other tests.
set(test_seconds
    eval_out/python 220 cli/pages 180 cli/wheel 180 cli/processes_failures 120 cli/kill 110 accelerator/command 110
    cli/templates 100 runtime/train/loop/full_disk 90 accelerator/tools 80 cli/tune 80 cli/install 80 cli/code 100
    eval_out/callbacks/python_metric 70 iterators/vunet/learning 70 runtime/train/distributed/world 60 cli/processes 50
    runtime/tools/export/exported_network 50 models/compiled_nets 400 cli/compiled 270 cli/exported 50 models/packages/packages 50 models/exported_fuzz 50 cli/export 40
    configs/gallery 40 cli/python_data 40 code/prepare 40 cli/processes_everywhere 40 cli/code_errors 60 cli/guide 60
    runtime/data/python/python_worker 40 runtime/core/formats/torch_file 30 eval_out/write/eval_writer_kill 30
    cli/sweep 30 cli/class_names 30 accelerator/messages 30 cli/elastic 30 cli/restart 30)
set(test_seconds_of_others 25)

# The slowest tests begin first, so that none runs alone at the end: ctest measures that, but knows nothing in a fresh
# build. A test ends after five times its seconds, with what was running (time_limit.h), later on a crowded machine;
# ctest's own limit, which says less and knows no crowd, is for programs without that.
function(stepop_limit_tests)
  foreach(test ${ARGN})
    set(seconds ${test_seconds_of_others})
    list(FIND test_seconds ${test} place)
    if(NOT place EQUAL -1)
      math(EXPR place "${place} + 1")
      list(GET test_seconds ${place} seconds)
    endif()
    set_tests_properties(${test} PROPERTIES COST ${seconds})
    math(EXPR limit "5 * ${seconds}")
    if(STEPOP_SANITIZE)
      math(EXPR limit "10 * ${limit}")
    endif()
    math(EXPR last "4 * ${limit}")
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT STEPOP_TEST_SECONDS=${limit})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${last})
  endforeach()
endfunction()
