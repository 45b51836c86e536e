"""python -m podium.calibration"""

from podium.experiments.calibration.bench import main
from podium.experiments.runner import run_bench

run_bench(main)
