#pragma once

namespace stepop {

/// Ends the tests after the seconds in STEPOP_TEST_SECONDS, which tests/CMakeLists.txt sets for
/// each entry of ctest; the time that the tests wait for a processor does not count. Prints the
/// test case and the processes that were running, and kills them. ctest itself would print neither.
/// To be called first in main, before there are threads.
void limit_time();

}  // namespace stepop
