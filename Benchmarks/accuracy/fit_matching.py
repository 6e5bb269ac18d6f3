"""Fits the confidence of `imprint detect --artwork` to scores of photos.

    python3 Benchmarks/accuracy/fit_matching.py RESULTS --midpoint M --width W --growth G

RESULTS is the folder of Benchmarks/accuracy/brands.py with the method matching, and --base its base model, if any. --midpoint, --width and
--growth are the calibration of the program that made the results (`MatchCalibration` in Swift), which turns the confidences back into
scores. Prints the new calibration. With it, a fraction --false-alarms of the photos without a logo has a confidence above 0.5, both for one
logo and for all logos of a draw. The width comes from Platt scaling over pairs of a photo and a logo, with equal weights for photos of the
logo and photos without a logo. Also prints the fraction of pairs of a photo of one brand and the logo of another with a confidence of 0.5
or more.
"""

import argparse
import json
import math
from pathlib import Path

import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    for name in ("midpoint", "width", "growth"):
        parser.add_argument(f"--{name}", type=float, required=True)
    parser.add_argument("--base", help="the base model of the results")
    parser.add_argument("--false-alarms", type=float, default=0.04)
    args = parser.parse_args()

    positives, negatives, others, highest, counts = [], [], [], [], []
    for file in sorted(args.results.glob(f"matching-{Path(args.base).stem + '-' if args.base else ''}[0-9].json")):
        stored = json.loads(file.read_text())
        if not isinstance(stored["key"]["photos"], dict):
            raise SystemExit(f"{file} is of an earlier version. Delete it, and run Benchmarks/accuracy/brands.py again.")
        brands, photos = list(stored["key"]["artwork"]), stored["key"]["photos"]
        found = stored["result"]["scores"]
        scores = numpy.array([[score(found[photo][brand], len(brands), args) for brand in brands] for photo in photos])
        truth = numpy.array([brands.index(label) if label in brands else -1 for label in photos.values()])
        positives += [scores[truth == index, index] for index in range(len(brands))]
        negatives += [scores[truth == -1].ravel()]
        others += [scores[(truth != -1) & (truth != index), index] for index in range(len(brands))]
        highest.append(scores[truth == -1].max(1))
        counts.append(len(brands))
    if not counts:
        raise SystemExit(f"{args.results} has no results of the method matching. Run Benchmarks/accuracy/brands.py first.")
    negatives = numpy.concatenate(negatives)
    midpoint = numpy.quantile(negatives, 1 - args.false_alarms)
    growth = numpy.quantile(numpy.concatenate(highest), 1 - args.false_alarms) - midpoint
    if max(counts) == 1:
        raise SystemExit("The growth needs draws of several logos. Run Benchmarks/accuracy/brands.py with a larger --group.")
    growth /= math.log(sum(counts) / len(counts))
    print(f"MatchCalibration(midpoint: {midpoint:.4f}, width: {platt_width(numpy.concatenate(positives), negatives):.4f}, growth: {growth:.4f})")
    print(f"photos of other brands with a confidence of 0.5 or more, for one logo: {(numpy.concatenate(others) >= midpoint).mean():.0%}")


def score(confidence, count, calibration):
    """Returns the score that has a confidence; the program prints it with float32 accuracy."""
    confidence = min(max(confidence, 1e-7), 1 - 1e-7)
    odds = math.log(confidence / (1 - confidence))
    return calibration.midpoint + calibration.growth * math.log(count) + calibration.width * odds


def platt_width(positives, negatives):
    """Returns the width of the logistic function with the highest likelihood, both kinds weighted equally."""
    x = numpy.concatenate([positives, negatives])
    y = numpy.concatenate([numpy.ones(len(positives)), numpy.zeros(len(negatives))])
    weight = numpy.where(y == 1, 0.5 / len(positives), 0.5 / len(negatives))
    slope, offset = 1 / x.std(), -x.mean() / x.std()
    for _ in range(100):  # Newton's method
        p = 1 / (1 + numpy.exp(-(slope * x + offset)))
        gradient = numpy.array([(weight * (p - y) * x).sum(), (weight * (p - y)).sum()])
        curvature = weight * p * (1 - p)
        hessian = numpy.array([[(curvature * x * x).sum(), (curvature * x).sum()], [(curvature * x).sum(), curvature.sum()]])
        step = numpy.linalg.solve(hessian + 1e-12 * numpy.eye(2), gradient)
        slope, offset = slope - step[0], offset - step[1]
        if abs(step).max() < 1e-9:
            break
    return 1 / slope


if __name__ == "__main__":
    main()
