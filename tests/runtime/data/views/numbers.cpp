#include "tests/runtime/data/views/numbers.h"

namespace stepop {

STEPOP_REGISTER_DATASET(TestNumbers, {"For tests.",
                                      {{"size", "10", ""},
                                       {"first", "0", ""},
                                       {"run", "3", ""},
                                       {"bad", "-1", ""},
                                       {"draws", "false", ""},
                                       {"gathers", "false", ""},
                                       {"pads", "false", ""},
                                       {"notice", "", ""}}});

}  // namespace stepop
