internal import CImprintKernels

extension RasterImage {
    /// The image with a random number added to every sample but alpha, of mean 0 and the given deviation (0…40 of 255);
    /// the same for the same key.
    package func noisy(deviation: Float, key: UInt64) -> RasterImage {
        // The kernel's numbers have a deviation of 147.8 / 65536 where the strength is 1.
        let strength = Int32((deviation * 65536 / 147.8).rounded())
        var result = self
        imprint_add_noise(&result.samples, samples.count, key, strength)
        return result.withAlpha(of: self)
    }

    /// The image with the alpha of another one, if they have it.
    func withAlpha(of other: RasterImage) -> RasterImage {
        guard channels == 4 else { return self }
        var result = self
        for place in stride(from: 3, to: samples.count, by: 4) { result.samples[place] = other.samples[place] }
        return result
    }
}
