"""Accuracy and AUC of predictions, with intervals that count groups, not photos: those of one walk are right or wrong together."""

import itertools
import random
from collections import Counter
from typing import NamedTuple


class Prediction(NamedTuple):
    """What was said of a photo: its confidence in one of two labels, and whether it bears this one."""
    score: float
    is_positive: bool
    is_correct: bool
    group: int


def accuracy(predictions, weights):
    """The share of right answers, each counting as often as the weight of its group says; none where all weigh nothing."""
    right = sum(weights[prediction.group] for prediction in predictions if prediction.is_correct)
    all_of_them = sum(weights[prediction.group] for prediction in predictions)
    return right / all_of_them if all_of_them else None


def auc(predictions, weights):
    """The chance that a photo with the label scores above one without, half of it where they are even; in order of their scores."""
    wins = positives = negatives = 0
    for _, even in itertools.groupby(predictions, key=lambda prediction: prediction.score):
        counts = Counter()
        for prediction in even:
            counts[prediction.is_positive] += weights[prediction.group]
        wins += counts[True] * (negatives + counts[False] / 2)
        positives += counts[True]
        negatives += counts[False]
    return wins / (positives * negatives) if positives and negatives else None


def bootstrap(measure, runs, resamples=1000):
    """A measure's mean over runs, and the 2.5th and 97.5th percentile of it over groups drawn anew, with replacement."""
    runs = [sorted(run) for run in runs]
    groups = sorted({prediction.group for run in runs for prediction in run})

    def mean(weights):
        values = [value for value in (measure(run, weights) for run in runs) if value is not None]
        return sum(values) / len(values) if values else None

    source = random.Random(1)
    drawn = (mean(Counter(source.choices(groups, k=len(groups)))) for _ in range(resamples))
    drawn = sorted(value for value in drawn if value is not None)
    whole = mean(Counter(groups))
    return None if whole is None else (whole, drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))])
