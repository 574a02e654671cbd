import sys

from stepop import main

sys.argv[0] = "stepop"
main()
