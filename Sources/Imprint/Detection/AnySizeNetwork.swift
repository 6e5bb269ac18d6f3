internal import ImprintCore
package import ImprintImages
internal import ImprintModel
package import ImprintNetwork

/// A fully convolutional network that runs on images of any size.
///
/// It caches the execution plan of each size, and is not thread-safe.
package final class AnySizeNetwork {
    /// The output of the network for an image, [rows, columns, channels]: heat maps or features.
    package struct Map {
        /// Keeps the memory of the values.
        private let plan: ExecutionPlan

        fileprivate init(_ plan: ExecutionPlan) { self.plan = plan }

        /// The values for this image; the next run of the network overwrites them.
        package var values: UnsafeMutableBufferPointer<Float> { plan.output }
        /// The shape.
        package var shape: TensorShape { plan.network.output }

        /// Returns the value of a channel at a position.
        package subscript(row: Int, column: Int, channel: Int) -> Float {
            values[(row * shape.width + column) * shape.channels + channel]
        }
    }

    /// The network, for one of the sizes.
    package let network: Network
    private let parameters: Parameters
    private let preprocessing: Preprocessing
    private let threads: Int
    private let precision: Precision
    /// The cached execution plans, by the input shape.
    private(set) var plans: [TensorShape: ExecutionPlan] = [:]
    private let planLimit: Int
    /// The thread pools that the plans share, by the number of threads.
    private var threadPools: [Int: ThreadPool] = [:]

    /// Creates a network for images of any size.
    /// - Parameters:
    ///   - plans: The maximum number of cached plans; each takes up to dozens of megabytes.
    ///   - threads: The maximum number of threads; small images use fewer.
    package init(
        _ network: Network, parameters: Parameters, preprocessing: Preprocessing, plans: Int, threads: Int = 1,
        precision: Precision = .automatic
    ) {
        self.network = network
        self.parameters = parameters
        self.preprocessing = preprocessing
        self.threads = threads
        self.precision = precision
        planLimit = plans
    }

    /// Runs the network on an image.
    /// - Parameter image: An image with 3 channels.
    /// - Throws: `ImprintError.unsupportedImageSize` if the network does not accept the size, `ImprintError.outOfMemory`.
    package func run(_ image: RasterImage) throws(ImprintError) -> Map {
        let plan = try plan(height: image.height, width: image.width)
        image.samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: plan.input) }
        plan.forward(count: 1)
        return Map(plan)
    }

    /// Runs the network on each level of an image pyramid.
    /// - Parameters:
    ///   - levels: The pyramid levels: for each, the side in pixels of a square with the area of the scaled image.
    ///   - stride: The sides of scaled images are multiples of `stride`, and at least 2 · `stride`. A very long image is squeezed until it
    ///     has at most twice the area of the square.
    ///   - body: A closure that receives the output of the network and the scaled image.
    /// - Throws: The errors of `run(_:)` and of `body`.
    package func forEachLevel(
        of image: RasterImage, levels: [Int], stride: Int,
        _ body: (_ map: Map, _ level: RasterImage) throws(ImprintError) -> Void
    ) throws(ImprintError) {
        for level in levels {
            let scaled = Self.level(level, of: image, stride: stride)
            try body(try run(scaled), scaled)
        }
    }

    /// Returns an image of the pyramid that `forEachLevel` describes.
    package static func level(_ level: Int, of image: RasterImage, stride: Int) -> RasterImage {
        let factor = Float(level) / Float(image.width * image.height).squareRoot()
        func cells(_ side: Int) -> Int { max(Int((Float(side) * factor / Float(stride)).rounded()), 2) }
        let (rows, columns) = (cells(image.height), cells(image.width))
        let limit = max(2 * level * level / (stride * stride * min(rows, columns)), 2)
        return CropAndScale.scaleFill.apply(
            image, width: min(columns, limit) * stride, height: min(rows, limit) * stride)
    }

    private func plan(height: Int, width: Int) throws(ImprintError) -> ExecutionPlan {
        let shape = TensorShape(height: height, width: width, channels: 3)
        if let plan = plans[shape] { return plan }
        func unsupported(_ reason: String) -> ImprintError {
            .unsupportedImageSize(network: network.name, width: width, height: height, reason: reason)
        }
        let resized: Network
        do throws(NetworkError) {
            resized = try Network(name: network.name, input: shape, nodes: network.nodes)
        } catch {
            throw unsupported("\(error)".clause)
        }
        guard ParameterLayout(resized) == parameters.layout else {
            throw unsupported("its parameters have other shapes for this size")
        }
        // Bounds memory if every image has a different shape.
        if plans.count >= planLimit { plans.removeAll() }
        let plan: ExecutionPlan
        do throws(NetworkError) {
            var options = ExecutionPlan.Options(batchSize: 1, threads: threads)
            options.precision = precision
            options = options.limitingThreads(for: resized)
            options.threadPool = threadPool(options.workers.count)
            plan = try ExecutionPlan(resized, parameters: parameters, options: options)
        } catch .outOfMemory(let bytes) {
            throw .outOfMemory(byteCount: bytes)
        } catch {
            throw unsupported("\(error)".clause)
        }
        plans[shape] = plan
        return plan
    }

    /// Returns a pool of `count` threads; only one plan runs at a time, so all plans share it.
    private func threadPool(_ count: Int) -> ThreadPool {
        if let pool = threadPools[count] { return pool }
        let pool = ThreadPool(count: count)
        threadPools[count] = pool
        return pool
    }
}
