"""python -m podium"""

from podium.command.cli import main

raise SystemExit(main())
