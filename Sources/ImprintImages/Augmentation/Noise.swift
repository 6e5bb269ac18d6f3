internal import CImprintKernels

extension RasterImage {
    /// The image with random noise of mean 0 and the given standard deviation (0…40 of 255) on every sample except alpha.
    ///
    /// The same key gives the same noise.
    package func noisy(standardDeviation: Float, key: UInt64) -> RasterImage {
        // At strength 1 the noise of the kernel has a standard deviation of 147.8 / 65536.
        let strength = Int32((standardDeviation * 65536 / 147.8).rounded())
        var result = self
        imprint_add_noise(&result.samples, samples.count, key, strength)
        return result.withAlpha(of: self)
    }

    /// The image with the alpha of another one, if they have it.
    func withAlpha(of other: RasterImage) -> RasterImage {
        guard channels == 4 else { return self }
        var result = self
        for index in stride(from: 3, to: samples.count, by: 4) { result.samples[index] = other.samples[index] }
        return result
    }
}
