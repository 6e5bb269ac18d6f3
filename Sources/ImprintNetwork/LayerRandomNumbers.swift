internal import ImprintCore

/// The random numbers of a layer for one image in one pass; see `LayerContext.randomNumbers(_:image:)`.
public struct LayerRandomNumbers: RandomNumberGenerator, Sendable {
    private var stream: RandomStream

    fileprivate init(_ stream: RandomStream) { self.stream = stream }

    /// Returns the next 64 uniformly distributed bits.
    public mutating func next() -> UInt64 { stream.next() }

    /// Returns a uniformly distributed number in `[0, 1)`, a multiple of 2⁻²⁴.
    public mutating func uniform() -> Float { stream.uniform() }

    /// Returns an approximately normally distributed number with mean 0 and standard deviation 1, between −6 and 6.
    public mutating func normal() -> Float { stream.normal() }
}

extension LayerContext {
    /// Returns the random numbers of this layer for an image of the current pass.
    ///
    /// The plan's seed, the node, the number of the pass (`ExecutionPlan.passCount`), the image's index in the whole batch and the name determine
    /// them. They do not depend on the number of threads, or on the processes that divide the batch. `backward` gets the same numbers as the
    /// `forward` before it. Draw numbers only in training (`training`), so that predictions are reproducible.
    /// - Parameters:
    ///   - name: The purpose of the numbers, such as "dropout"; each name has its own numbers.
    ///   - image: The index of the image, 0 to `batch` − 1.
    public func randomNumbers(_ name: String, image: Int) -> LayerRandomNumbers {
        LayerRandomNumbers(
            RandomStream(seed: randomness.seed, name, nodeIndex, randomness.step, part.images.lowerBound + image))
    }
}
