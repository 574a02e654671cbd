#pragma once

namespace stepop {

/// Ends the tests after the seconds in STEPOP_TEST_SECONDS, which tests/CMakeLists.txt sets for
/// each entry of ctest; seconds in which the machine is crowded count less. Prints the test case
/// and the processes that were running, and kills them. ctest itself would print neither. To be
/// called first in main, before there are threads.
void limit_time();

}  // namespace stepop
