"""A Spark cluster of its own for the tests: a standalone master and two workers on loopback, and a session on it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

START = 90  # seconds that a process gets to come up


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """Started on entering, ended on leaving; each worker offers one core."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        if shutil.which("java") is None:
            raise RuntimeError("Java is missing: install Debian's openjdk-17-jre-headless (.ci/run does)")
        import pyspark

        self.folder, self.port = folder, free_port()
        self.home = Path(pyspark.__file__).parent
        self.url = f"spark://127.0.0.1:{self.port}"
        self.number = workers
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Cluster:
        ports = ["--host", "127.0.0.1", "--webui-port", "0"]
        self.start("master", "org.apache.spark.deploy.master.Master", *ports, "--port", str(self.port))
        self.wait_for("master", "New state: ALIVE")
        for i in range(self.number):
            self.add_worker(f"worker-{i}")
        return self

    def add_worker(self, name: str) -> None:
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name)]
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        self.start(name, "org.apache.spark.deploy.worker.Worker", *place, *size, self.url)
        self.wait_for(name, "Successfully registered with master")

    def start(self, name: str, kind: str, *options: str) -> None:
        command = [str(self.home / "bin" / "spark-class"), kind, *options]
        settings = {"SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        settings["SPARK_DAEMON_MEMORY"] = "512m"
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **settings}, start_new_session=True
            )

    def wait_for(self, name: str, words: str) -> None:
        end = time.monotonic() + START
        log = self.folder / f"{name}.log"
        while words not in log.read_text(errors="replace"):
            if time.monotonic() > end or self.processes[name].poll() is not None:
                raise RuntimeError(f"Spark's {name} did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """At once, with everything that it has started."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self.processes)):
            self.kill(name)

    def session(self, settings: Mapping[str, Any] | None = None) -> Any:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(self.url).appName("podium tests")
        chosen = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.executor.cores": "1",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.files.openCostInBytes": "0",
            "spark.sql.files.maxPartitionBytes": "400k",
            "spark.executorEnv.OMP_NUM_THREADS": "1",
            "spark.python.worker.reuse": "true",
            "spark.local.dir": str(self.folder / "local"),
        }
        if os.environ.get("PYTHONPATH"):
            chosen["spark.executorEnv.PYTHONPATH"] = os.environ["PYTHONPATH"]
        for key, value in (chosen | dict(settings or {})).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        return session
