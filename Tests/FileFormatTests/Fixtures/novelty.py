"""Writes novelty.json, reference values of NoveltyRule.novelty(of:): python3 novelty.py (needs NumPy)."""

import json
from pathlib import Path

import numpy as np

random = np.random.default_rng(5)
channels, labels, threshold = 24, [0, 1, 3], np.float32(0.1875)
means = random.random((len(labels), channels))
means /= np.linalg.norm(means, axis=1, keepdims=True)
means = means.astype(np.float16).astype(np.float32)
features = np.concatenate([
    random.random((6, channels)), random.normal(size=(4, channels)) * 1000, np.zeros((1, channels)), -means[:1]])
features = features.astype(np.float32)
length = np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True)
cosine = features.astype(np.float64) @ means.astype(np.float64).T / np.where(length > 0, length, 1)
novelty = np.maximum(1 - cosine, 0).min(axis=1) / threshold
Path(__file__).with_name("novelty.json").write_text(json.dumps({
    "labels": labels, "means": [float(value) for value in means.ravel()], "threshold": float(threshold),
    "features": [[float(value) for value in row] for row in features], "novelty": [float(value) for value in novelty]}))
