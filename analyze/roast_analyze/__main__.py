"""Run ``roast-analyze`` as ``python -m roast_analyze``."""

import sys

from roast_analyze.cli import main

sys.exit(main())
