"""``python -m isamap``."""

import sys

from isamap.cli import main

if __name__ == "__main__":
    sys.exit(main())
