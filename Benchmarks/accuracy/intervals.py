"""Accuracy and AUC with bootstrap intervals over groups of photos, because the predictions for a burst are correlated."""

import itertools
import random
from collections import Counter
from typing import NamedTuple


class Prediction(NamedTuple):
    """The prediction for a photo: the confidence in one of two labels, and whether that is the true label."""
    score: float
    is_positive: bool
    is_correct: bool
    group: int


def accuracy(predictions, weights):
    """Returns the accuracy, weighted by group; None if the sum of the weights is 0."""
    correct = sum(weights[prediction.group] for prediction in predictions if prediction.is_correct)
    total = sum(weights[prediction.group] for prediction in predictions)
    return correct / total if total else None


def auc(predictions, weights):
    """Returns the AUC of predictions that are sorted by score; ties count half."""
    wins = positives = negatives = 0
    for _, ties in itertools.groupby(predictions, key=lambda prediction: prediction.score):
        counts = Counter()
        for prediction in ties:
            counts[prediction.is_positive] += weights[prediction.group]
        wins += counts[True] * (negatives + counts[False] / 2)
        positives += counts[True]
        negatives += counts[False]
    return wins / (positives * negatives) if positives and negatives else None


def bootstrap(measure, runs, resamples=1000):
    """Returns the mean of a metric over runs, and its 2.5th and 97.5th percentiles over bootstrap samples of the groups."""
    runs = [sorted(run) for run in runs]
    groups = sorted({prediction.group for run in runs for prediction in run})

    def mean(weights):
        values = [value for value in (measure(run, weights) for run in runs) if value is not None]
        return sum(values) / len(values) if values else None

    generator = random.Random(1)
    samples = (mean(Counter(generator.choices(groups, k=len(groups)))) for _ in range(resamples))
    samples = sorted(value for value in samples if value is not None)
    estimate = mean(Counter(groups))
    return None if estimate is None else (estimate, samples[int(0.025 * len(samples))], samples[int(0.975 * len(samples))])
