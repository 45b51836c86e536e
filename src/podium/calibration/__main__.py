"""python -m podium.calibration"""

from podium.calibration.bench import main

main()
