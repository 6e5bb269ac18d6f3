"""Prints the reference values of MultiLabelTests.swift: binary cross-entropy by PyTorch, metrics by scikit-learn.

Run it with an interpreter that has torch, numpy and scikit-learn: python3 multi_label_references.py
"""

import numpy
import torch
from sklearn import metrics

logits = torch.tensor([[0.5, -1.25, 2.0], [-30.0, 40.0, 0.0], [1.5, 0.25, -0.75], [-2.0, 3.0, 1.0]], requires_grad=True)
targets = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
weights = torch.tensor([2.0, 0.5, 1.0])

for smoothing, weight in [(0.0, None), (0.1, None), (0.0, weights), (0.2, weights)]:
    logits.grad = None
    smoothed = targets * (1 - smoothing) + smoothing / 2
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, smoothed, pos_weight=weight)
    loss.backward()
    print(f"({smoothing}, {weight is not None}, {loss.item():.7f}, {[round(v, 7) for v in logits.grad.flatten().tolist()]}),")

truth = numpy.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]])
scores = numpy.array([[0.9, 0.2, 0.1], [0.4, 0.8, 0.3], [0.6, 0.8, 0.2], [0.4, 0.1, 0.9], [0.7, 0.3, 0.4], [0.1, 0.9, 0.5]])
predicted = scores >= 0.5
print("AP", [metrics.average_precision_score(truth[:, k], scores[:, k]) for k in (0, 1)])
print("micro F1", metrics.f1_score(truth, predicted, average="micro", zero_division=0))
print("macro F1", metrics.f1_score(truth, predicted, average="macro", zero_division=0))
print("precision", metrics.precision_score(truth, predicted, average=None, zero_division=numpy.nan).tolist())
print("recall", metrics.recall_score(truth, predicted, average=None, zero_division=numpy.nan).tolist())
