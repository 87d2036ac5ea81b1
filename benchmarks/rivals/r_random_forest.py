"""R's randomForest: its own forest on the same rows, then predict(..., proximity = TRUE)."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

SCRIPT = """
suppressMessages(library(randomForest))
args <- commandArgs(TRUE)
data <- as.matrix(read.csv(args[1], header = FALSE))
X <- data[, -1]
forest <- randomForest(X, factor(data[, 1]), ntree = as.integer(args[2]))
seconds <- system.time(P <- predict(forest, X, proximity = TRUE)$proximity)["elapsed"]
cat(seconds, sum(P > 0))
"""


def start(task, forest, X, y, n_jobs):
    folder = Path(tempfile.mkdtemp())
    np.savetxt(folder / "data.csv", np.column_stack([y, X]), delimiter=",", fmt="%.9g")
    (folder / "script.R").write_text(SCRIPT)
    n_trees = str(len(forest.estimators_))

    def run():
        command = ["Rscript", folder / "script.R", folder / "data.csv", n_trees]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return {"seconds": float(found[0]), "nonzeros": int(float(found[1]))}

    return run
