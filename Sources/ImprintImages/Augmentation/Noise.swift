internal import CImprintKernels

extension RasterImage {
    /// Adds random noise of mean 0 and the given standard deviation (0…40 of 255) to every sample except alpha.
    ///
    /// The same key gives the same noise.
    package func noisy(standardDeviation: Float, key: UInt64) -> RasterImage {
        // The kernel multiplies the noise by strength / 65536. Its noise is the sum of four random bytes, whose standard deviation is
        // √(4 · (256² − 1) / 12) = 147.8.
        let strength = Int32((standardDeviation * 65536 / 147.8).rounded())
        var result = self
        imprint_add_noise(&result.samples, samples.count, key, strength)
        return result.withAlpha(of: self)
    }
}
