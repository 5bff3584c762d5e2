"""What spark-submit and the driver make of the variables.

Written from `SparkSubmitCommandBuilder.java` (SPARK_SUBMIT_OPTS are options of the JVM, split as a
shell would) and `SparkConf.scala` (it begins with the system properties that start with `spark.`).
spark-submit and a plain Python program with PySpark 3.5.6 had the same settings from the variables
of `test_spark.py`, and those of `--conf` before them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View


def configuration(env: Env) -> dict[str, str]:
    """The settings that a SparkConf begins with."""
    properties = {}
    for option in shlex.split(env["SPARK_SUBMIT_OPTS"]):
        assert option.startswith("-Dspark.")
        key, equals, value = option[2:].partition("=")
        assert equals
        assert key not in properties
        properties[key] = value
    return properties


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """Where executors find the driver, and whose they are."""
    found = configuration(env)
    host, port = found["spark.driver.host"], int(found["spark.driver.port"])
    assert 0 < port < 65536
    return View((host, port), found["spark.kubernetes.driver.pod.name"], frozenset({host}), 1)
