#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "runtime/core/system/quick_end.h"
#include "tests/time_limit.h"

int main(int argc, char** argv) {
  stepop::limit_time();
  stepop::end_quickly();
  return doctest::Context(argc, argv).run();
}
