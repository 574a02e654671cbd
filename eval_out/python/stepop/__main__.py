"""python -m stepop: the command `stepop`, of the wheel or of a tree."""

import os
import sys

from stepop import main, program

if os.path.exists(program):
    sys.argv[0] = "stepop"
    main()
else:
    from stepop.command import find_program
    from stepop.errors import StepopError

    try:
        os.execv(find_program(), ["stepop", *sys.argv[1:]])
    except StepopError as error:
        sys.exit(f"stepop: {error}")
