"""Classifies or searches photos with PySpark, with an `imprint` process for each partition.

    spark-submit spark_lines.py PATHS OUTPUT COMMAND…
    spark-submit spark_lines.py paths.txt results imprint classify logo.imprint --threads 1

PATHS has the path of a photo in each line; all workers need access to the photos and the model. COMMAND is an `imprint classify` or
`imprint detect` without photos. OUTPUT is a new folder: its files part-00000, part-00001, … have one JSON line for each photo, in the order of
PATHS. A photo that cannot be read has a line with "error". If a process fails, Spark starts it again, on any worker.
"""

import os
import shlex
import sys

from pyspark.sql import SparkSession


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    paths, output, *command = sys.argv[1:]
    context = SparkSession.builder.appName("imprint").getOrCreate().sparkContext
    lines = context.textFile(paths, context.defaultParallelism)
    # Without env, the processes get no environment, and so no PATH. This is the environment of the driver.
    results = lines.pipe(shlex.join([*command, "--files-from", "-", "--json"]), env=dict(os.environ), checkCode=True)
    results.saveAsTextFile(output)


if __name__ == "__main__":
    main()
