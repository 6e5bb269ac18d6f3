internal import CImprintKernels

extension RasterImage {
    /// Adds random noise of mean 0 and the given standard deviation (0…40 of 255) to every sample except alpha.
    ///
    /// The same key gives the same noise.
    package func noisy(standardDeviation: Float, key: UInt64) -> RasterImage {
        // At strength 1 the noise of the kernel has a standard deviation of 147.8 / 65536.
        let strength = Int32((standardDeviation * 65536 / 147.8).rounded())
        var result = self
        imprint_add_noise(&result.samples, samples.count, key, strength)
        return result.withAlpha(of: self)
    }

    /// Returns the image with the alpha channel of another one, if both have one.
    func withAlpha(of other: RasterImage) -> RasterImage {
        guard channels == 4 else { return self }
        var result = self
        for index in stride(from: 3, to: samples.count, by: 4) { result.samples[index] = other.samples[index] }
        return result
    }
}
