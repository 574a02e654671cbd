# How long the slower tests take, in seconds, on two cores beside two other tests.
set(test_seconds
    code/prepare 30 cli/templates 110 cli/install 60 cli/wheel 120 cli/code 110 cli/code_errors 90 cli/guide 70
    cli/pages 90 cli/kill 60 cli/tune 60 cli/processes_failures 80 cli/processes_everywhere 40 cli/from_dlas_training 40
    cli/earlier_version 40 cli/export 60 cli/every_config 60 cli/python_data 40 cli/report 40 cli/segmentation 40
    cli/sweep 50 cli/torture 60 cli/vunet 40 cli/watch 40 cli/machines 40 iterators/vunet/learning 70
    runtime/train/distributed/world 50 runtime/train/loop/full_disk 60 eval_out/write/eval_writer_kill 40
    eval_out/python 120 accelerator/command 60 accelerator/tools 100 cmake/site 40)
set(test_seconds_of_others 25)

# The slowest tests begin first, so that none runs alone at the end: ctest measures that, but knows nothing in a fresh
# build. A test ends after five times its seconds, with what was running (time_limit.h); ctest's own limit, which
# says less, is for programs without that.
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
    math(EXPR last "${limit} + 30")
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT STEPOP_TEST_SECONDS=${limit})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${last})
  endforeach()
endfunction()
