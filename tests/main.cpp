#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "runtime/core/system/quick_end.h"

int main(int argc, char** argv) {
  stepop::end_quickly();
  return doctest::Context(argc, argv).run();
}
