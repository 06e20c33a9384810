"""Run ``roast-record`` as ``python -m roast_recorder``."""

import sys

from roast_recorder.cli import main

sys.exit(main())
