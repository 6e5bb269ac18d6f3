"""Prints the reference values of LogisticRegressionTests.swift: the loss and the head that scikit-learn finds.

    python3 logistic_regression.py      (scikit-learn 1.7, NumPy 2)

Features are standardized as LogisticRegression.swift does: a hundredth of the mean variance is added to every variance. scikit-learn
minimizes C * sum of losses + |W|^2 / 2, so C = 1 / (decay * rows).
"""
import numpy as np
from sklearn.linear_model import LogisticRegression

rows, channels, labels = 60, 5, 3
# The values are exact in float32, and equal to those of the test.
features = np.array(
    [[((row * 7 + channel * 13 + row * channel) % 17) / 8 for channel in range(channels)] for row in range(rows)])
targets = np.array([int(row % 17 > 11) + int((row * 7) % 17 > 8) for row in range(rows)])
variance = features.var(axis=0)
scale = 1 / np.sqrt(variance + 0.01 * variance.mean())
mean = features.mean(axis=0)
standardized = (features - mean) * scale
for decay in (0.1, 0.003):
    model = LogisticRegression(C=1 / (decay * rows), tol=1e-10, max_iter=10000).fit(standardized, targets)
    weights = model.coef_.T * scale[:, None]
    bias = model.intercept_ - mean @ weights
    logits = features @ weights + bias
    logits -= logits.mean(axis=1, keepdims=True)
    print(decay, "logits of rows 0 and 41, centred:", np.round(logits[[0, 41]], 4).tolist())
