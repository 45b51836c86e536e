"""python -m podium.calibration"""

from podium.experiments.calibration.bench import main

main()
