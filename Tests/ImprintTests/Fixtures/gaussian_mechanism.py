"""Prints the reference values of GaussianMechanismTests: ε for a noise multiplier z and δ, computed with 60 digits.

    gaussian_mechanism.py    prints rows of z, δ, ε

ε is the smallest value for which Φ(1/(2z) − εz) − e^ε Φ(−1/(2z) − εz) ≤ δ. With mpmath the formula can be evaluated directly.
Requires: pip install mpmath.
"""

from mpmath import erfc, exp, mp, mpf, nstr, sqrt

mp.dps = 60


def phi(x):
    return erfc(-x / sqrt(mpf(2))) / 2


def loss(epsilon, z):
    return phi(1 / (2 * z) - epsilon * z) - exp(epsilon) * phi(-1 / (2 * z) - epsilon * z)


def epsilon(z, delta):
    if loss(mpf(0), z) <= delta:
        return mpf(0)
    low, high = mpf(0), mpf(1)
    while loss(high, z) > delta:
        low, high = high, 2 * high
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle, z) > delta else (low, middle)
    return high


for z in ("0.001", "0.01", "0.1", "0.5", "1", "1.1", "2", "4", "10", "100", "1000", "100000"):
    for delta in ("1e-3", "1e-5", "1e-10"):
        print(f"({z}, {delta}, {nstr(epsilon(mpf(z), mpf(delta)), 17)}),")
