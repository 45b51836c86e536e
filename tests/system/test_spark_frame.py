"""A small Spark frame is fetched as a log."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

import podium

pytestmark = pytest.mark.system

COLUMNS = {"age": [41, 30, 25], "action": ["call", "sms", "call"], "reward": [1.0, 0.0, 0.5]}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_spark_frame_gives_the_log_that_its_columns_give() -> None:
    if shutil.which("java") is None:
        pytest.fail("Java is not installed; on Debian run: apt-get install openjdk-17-jre-headless", pytrace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        try:
            log = podium.Log.from_frame(spark.createDataFrame(pd.DataFrame(COLUMNS)))
        finally:
            spark.stop()
    np.testing.assert_array_equal(log.actions, COLUMNS["action"])
    np.testing.assert_array_equal(log.rewards, COLUMNS["reward"])
    np.testing.assert_array_equal(log.states, COLUMNS["age"])
