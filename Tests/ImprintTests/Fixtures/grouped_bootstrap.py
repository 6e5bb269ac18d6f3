"""Computes the reference values for GroupBootstrapTests with scikit-learn and scipy.

    grouped_bootstrap.py FILE    reads {"truth": [N], "confidences": [N][2], "groups": [N], "weights": [R][G], "percentiles": [P]};
                                 prints {"metrics": [R] of accuracy, log loss, ECE and AUC, "interval": of the accuracy,
                                 "percentiles": the 2.5th and the 97.5th of the given numbers, "deviation": their standard deviation}

A metric weights each prediction by the weight of its group. The interval is that of scipy.stats.bootstrap for the accuracy, with the
groups as the samples.

Requires: pip install scikit-learn (tested with scikit-learn 1.9).
"""

import json
import sys

import numpy
from scipy.stats import bootstrap
from sklearn import metrics

case = json.load(open(sys.argv[1]))
truth, groups = numpy.array(case["truth"]), numpy.array(case["groups"])
confidences = numpy.array(case["confidences"])
best, correct = confidences.max(axis=1), confidences.argmax(axis=1) == truth


def weighted(weights):
    sample = numpy.array(weights)[groups]
    bins = numpy.digitize(best, numpy.linspace(0, 1, 16)[1:], right=True)
    gaps = [abs(numpy.sum(sample[bins == index] * (correct - best)[bins == index])) for index in set(bins)]
    one = truth[sample > 0]
    return {
        "accuracy": metrics.accuracy_score(truth, confidences.argmax(axis=1), sample_weight=sample),
        "logLoss": metrics.log_loss(truth, confidences, sample_weight=sample, labels=[0, 1]),
        "calibrationError": sum(gaps) / sample.sum(),
        "auc": metrics.roc_auc_score(truth, confidences[:, 1], sample_weight=sample) if len(set(one)) == 2 else None,
    }


counts = numpy.bincount(groups)
hits = numpy.bincount(groups, weights=correct)
found = bootstrap(
    (hits, counts), lambda hits, counts, axis: hits.sum(axis=axis) / counts.sum(axis=axis), paired=True, vectorized=True,
    n_resamples=20000, method="percentile", random_state=1)
values = case["percentiles"]
print(json.dumps({
    "metrics": [weighted(weights) for weights in case["weights"]],
    "interval": list(found.confidence_interval),
    "percentiles": numpy.percentile(values, [2.5, 97.5]).tolist(),
    "deviation": numpy.std(values, ddof=1),
}))
