"""python -m podium"""

from podium.cli import main

raise SystemExit(main())
