"""The other half of ScikitLearnTests: what scikit-learn says of the same predictions.

    scikit_learn_metrics.py FILE    reads a JSON array of {"truth": [N], "confidences": [N][K], "logits": [N][K]}, prints an
                                    array of metrics in the same order; what does not exist is null

What scikit-learn lacks (Wilson's interval, the expected calibration error, the temperature) is written here with numpy and
scipy, each in another way than in Swift.

Needs: pip install scikit-learn (written against scikit-learn 1.9).
"""

import json
import sys
import warnings

import numpy
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import norm
from sklearn import metrics


def expected_calibration_error(truth, confidences, bins=15):
    best = confidences.max(axis=1)
    right = confidences.argmax(axis=1) == truth
    places = numpy.digitize(best, numpy.linspace(0, 1, bins + 1)[1:], right=True)
    return sum(abs(right[places == place].sum() - best[places == place].sum()) for place in set(places)) / len(truth)


def wilson(right, count):
    """The shares that a test of size 5 % does not reject: where (p - share)^2 = z^2 * share * (1 - share) / count."""
    z, p = norm.ppf(0.975), right / count
    return sorted(numpy.roots([1 + z**2 / count, -(2 * p + z**2 / count), p**2]).real)


def temperature(truth, logits):
    count, labels = logits.shape
    targets = numpy.full(logits.shape, 1 / ((count + 2) * (labels - 1)))
    targets[numpy.arange(count), truth] = (count + 1) / (count + 2)
    found = minimize_scalar(
        lambda place: -(targets * log_softmax(logits * numpy.exp(-place), axis=1)).mean(),
        bounds=numpy.log([0.01, 100]), method="bounded", options={"xatol": 1e-12, "maxiter": 1000})
    return numpy.exp(found.x)


def of_label(place, truth, predicted, confidences):
    bears, scores = truth == place, confidences[:, place]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        bears, predicted == place, labels=[True], zero_division=numpy.nan)
    values = {"precision": precision[0], "recall": recall[0], "f1": f1[0], "count": int(bears.sum())}
    if bears.any():
        precisions, recalls, thresholds = metrics.precision_recall_curve(bears, scores)
        values["averagePrecision"] = metrics.average_precision_score(bears, scores)
        values["precisionRecallCurve"] = numpy.transpose([thresholds, precisions[:-1], recalls[:-1]]).tolist()
    if bears.any() and not bears.all():
        rates = metrics.roc_curve(bears, scores, drop_intermediate=False)
        values["auc"] = metrics.roc_auc_score(bears, scores)
        # The first threshold is infinite, which JSON lacks.
        values["rocCurve"] = numpy.transpose([rates[2], rates[0], rates[1]])[1:].tolist()
    return values


def measured(case):
    truth, confidences, logits = (numpy.array(case[key]) for key in ("truth", "confidences", "logits"))
    count, labels = confidences.shape
    predicted = confidences.argmax(axis=1)
    macro = {"average": "macro", "zero_division": 0}
    found = temperature(truth, logits)

    def calibration_error(divisor):
        return expected_calibration_error(truth, softmax(logits / divisor, axis=1).astype(numpy.float32).astype(float))

    return {
        "accuracy": metrics.accuracy_score(truth, predicted),
        "accuracyInterval": wilson((truth == predicted).sum(), count),
        # Of equal confidences scikit-learn takes the last label for the better one, Imprint the first.
        "topAccuracy": [
            metrics.top_k_accuracy_score(labels - 1 - truth, confidences[:, ::-1], k=k, labels=range(labels))
            for k in range(1, labels)
        ] if labels > 2 else [],
        "confusion": metrics.confusion_matrix(truth, predicted, labels=range(labels)).tolist(),
        "perLabel": [of_label(place, truth, predicted, confidences) for place in range(labels)],
        "macroPrecision": metrics.precision_score(truth, predicted, **macro),
        "macroRecall": metrics.recall_score(truth, predicted, **macro),
        "macroF1": metrics.f1_score(truth, predicted, **macro),
        "balancedAccuracy": metrics.balanced_accuracy_score(truth, predicted),
        "logLoss": metrics.log_loss(truth, confidences, labels=range(labels)),
        "calibrationError": expected_calibration_error(truth, confidences),
        "temperature": found,
        "errorBefore": calibration_error(1),
        "errorAfter": calibration_error(found),
    }


def without_nan(value):
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and numpy.isnan(value) else value


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # They say which values do not exist.
    with open(sys.argv[1]) as file:
        print(json.dumps([without_nan(measured(case)) for case in json.load(file)]))
