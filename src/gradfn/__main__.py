"""``python -m gradfn``."""

import sys

from gradfn.cli import main

sys.exit(main())
