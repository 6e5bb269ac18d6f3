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


class Gain(NamedTuple):
    """A gain, such as that of a user or a photo, and its group."""
    group: int
    value: float


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
    return resampled(lambda weights: mean(measure(run, weights) for run in runs), runs, resamples)


def bootstrap_difference(measure, runs, others, resamples=1000):
    """Returns the mean difference of a metric between runs and other runs, and its 2.5th and 97.5th percentiles.

    The difference is paired: both runs of a pair have predictions for the same photos, and each bootstrap sample has the same groups in both.
    """
    pairs = [(sorted(run), sorted(other)) for run, other in zip(runs, others, strict=True)]

    def difference(pair, weights):
        values = [measure(run, weights) for run in pair]
        return None if None in values else values[0] - values[1]

    return resampled(
        lambda weights: mean(difference(pair, weights) for pair in pairs), [run for run, _ in pairs], resamples)


def mean_gain(gains, weights):
    """Returns the mean gain, weighted by group."""
    total = sum(weights[gain.group] for gain in gains)
    return sum(weights[gain.group] * gain.value for gain in gains) / total if total else None


def mean(values):
    """Returns the mean of the values that are not None; None if there are none."""
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def resampled(statistic, runs, resamples):
    """Returns a statistic of the groups' weights, and its 2.5th and 97.5th percentiles over bootstrap samples of the groups."""
    groups = sorted({prediction.group for run in runs for prediction in run})
    generator = random.Random(1)
    samples = (statistic(Counter(generator.choices(groups, k=len(groups)))) for _ in range(resamples))
    samples = [value for value in samples if value is not None]
    estimate = statistic(Counter(groups))
    return None if estimate is None else (estimate, *percentiles(samples))


def percentiles(samples):
    """Returns the 2.5th and the 97.5th percentile of samples."""
    ordered = sorted(samples)
    return ordered[int(0.025 * len(ordered))], ordered[int(0.975 * len(ordered))]
