"""Computes the reference metrics for ScikitLearnTests with scikit-learn.

    scikit_learn_metrics.py FILE    reads a JSON array of {"truth": [N], "confidences": [N][K], "logits": [N][K]}, prints an
                                    array of metrics in the same order; undefined metrics are null

scikit-learn lacks the Wilson interval, the expected calibration error and the temperature. This script computes them with
numpy and scipy, with other methods than the Swift code.

Requires: pip install scikit-learn (tested with scikit-learn 1.9).
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
    correct = confidences.argmax(axis=1) == truth
    indices = numpy.digitize(best, numpy.linspace(0, 1, bins + 1)[1:], right=True)
    bins_with_images = (indices == index for index in set(indices))
    return sum(abs(correct[members].sum() - best[members].sum()) for members in bins_with_images) / len(truth)


def wilson(correct, count):
    """Returns the bounds of the 95 % interval: the roots s of (p - s)^2 = z^2 * s * (1 - s) / count."""
    z, p = norm.ppf(0.975), correct / count
    return sorted(numpy.roots([1 + z**2 / count, -(2 * p + z**2 / count), p**2]).real)


def temperature(truth, logits):
    count, labels = logits.shape
    targets = numpy.full(logits.shape, 1 / ((count + 2) * (labels - 1)))
    targets[numpy.arange(count), truth] = (count + 1) / (count + 2)
    found = minimize_scalar(
        lambda log_t: -(targets * log_softmax(logits * numpy.exp(-log_t), axis=1)).mean(),
        bounds=numpy.log([0.01, 100]), method="bounded", options={"xatol": 1e-12, "maxiter": 1000})
    return numpy.exp(found.x)


def label_metrics(label, truth, predicted, confidences):
    positive, scores = truth == label, confidences[:, label]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        positive, predicted == label, labels=[True], zero_division=numpy.nan)
    values = {"precision": precision[0], "recall": recall[0], "f1": f1[0], "count": int(positive.sum())}
    if positive.any():
        precisions, recalls, thresholds = metrics.precision_recall_curve(positive, scores)
        values["averagePrecision"] = metrics.average_precision_score(positive, scores)
        values["precisionRecallCurve"] = numpy.transpose([thresholds, precisions[:-1], recalls[:-1]]).tolist()
    if positive.any() and not positive.all():
        rates = metrics.roc_curve(positive, scores, drop_intermediate=False)
        values["auc"] = metrics.roc_auc_score(positive, scores)
        # The first threshold is infinite, which JSON cannot represent.
        values["rocCurve"] = numpy.transpose([rates[2], rates[0], rates[1]])[1:].tolist()
    return values


def all_metrics(case):
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
        # Among equal confidences scikit-learn ranks the last label first, Imprint the first label.
        "topAccuracy": [
            metrics.top_k_accuracy_score(labels - 1 - truth, confidences[:, ::-1], k=k, labels=range(labels))
            for k in range(1, labels)
        ] if labels > 2 else [],
        "confusion": metrics.confusion_matrix(truth, predicted, labels=range(labels)).tolist(),
        "perLabel": [label_metrics(label, truth, predicted, confidences) for label in range(labels)],
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
    warnings.simplefilter("ignore")  # scikit-learn warns about undefined metrics.
    with open(sys.argv[1]) as file:
        print(json.dumps([without_nan(all_metrics(case)) for case in json.load(file)]))
