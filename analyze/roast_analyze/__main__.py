"""Makes ``python -m roast_analyze`` the command ``roast-analyze``."""

import sys

from roast_analyze.cli import main

sys.exit(main())
