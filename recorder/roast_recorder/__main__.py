"""``python -m roast_recorder`` is ``roast-record``."""

import sys

from roast_recorder.cli import main

sys.exit(main())
