import ImprintCore
import Testing

@testable import ImprintNetwork

/// Tests the moments of blocks of rows and their merged mean and variance.
@Suite struct MomentsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let channels: Int
        /// The number of rows of each block.
        let blocks: [Int]
        var mean: Float = 0
        var testDescription: String { "\(blocks.count) blocks x \(channels) channels, mean \(mean)" }
    }

    static let cases = [
        Case(channels: 1, blocks: [1]), Case(channels: 3, blocks: [5]), Case(channels: 15, blocks: [7, 7, 2]),
        Case(channels: 16, blocks: [64, 1, 9]), Case(channels: 17, blocks: Array(repeating: 10, count: 50)),
        Case(channels: 33, blocks: [4, 3, 2, 1]), Case(channels: 72, blocks: [31, 33]),
        Case(channels: 5, blocks: Array(repeating: 256, count: 30) + [3], mean: 1000),
        Case(channels: 40, blocks: [2000, 2000, 10], mean: -1000),
    ]

    /// Returns uniform values around `mean` with standard deviation 1; if the mean is 0, each channel has another scale.
    private func values(_ example: Case) -> [Float] {
        randomValues(example.blocks.reduce(0, +) * example.channels, "moments").enumerated().map { index, value in
            let scale = example.mean == 0 ? Float(index % example.channels + 1) : 1
            return example.mean + scale * value * Float(3).squareRoot()
        }
    }

    private struct Result: Equatable {
        var mean: [Float]
        var variance: [Float]
    }

    /// Records the blocks in this order, in memory for two more blocks, and merges `part` channels at a time.
    private func merge(_ example: Case, order: [Int], part: Int) throws -> Result {
        let (channels, count) = (example.channels, example.blocks.count)
        let memory = try AlignedMemory(byteCount: Moments.byteCount(channels: channels, blocks: count + 2))
        memory.floats().update(repeating: .nan, count: memory.byteCount / MemoryLayout<Float>.stride)
        let moments = Moments(memory.base, channels: channels, blocks: count + 2)
        moments.begin(blocks: count)
        let values = values(example)
        let starts = example.blocks.indices.map { example.blocks[..<$0].reduce(0, +) * channels }
        values.withUnsafeBufferPointer { values in
            for block in order {
                let part = UnsafeBufferPointer(
                    rebasing: values[starts[block]..<(starts[block] + example.blocks[block] * channels)])
                if let base = part.baseAddress { moments.record(base, rows: example.blocks[block], block: block) }
            }
        }
        var result = Result(
            mean: Array(repeating: .nan, count: channels), variance: Array(repeating: .nan, count: channels))
        for start in stride(from: 0, to: channels, by: part) {
            moments.merge(start..<min(start + part, channels), mean: &result.mean, variance: &result.variance)
        }
        return result
    }

    @Test(
        "Merged mean and variance equal those of all rows, even if the mean is 1000 standard deviations",
        arguments: cases)
    func formula(_ example: Case) throws {
        let result = try merge(example, order: Array(example.blocks.indices), part: 64)
        let values = values(example)
        for channel in 0..<example.channels {
            let column = stride(from: channel, to: values.count, by: example.channels).map { Double(values[$0]) }
            let mean = column.reduce(0, +) / Double(column.count)
            let variance = column.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(column.count)
            let tolerance = max(variance.squareRoot() * 1e-5, abs(mean) * 0x1p-23)
            #expect(abs(Double(result.mean[channel]) - mean) <= tolerance, "mean of channel \(channel)")
            #expect(abs(Double(result.variance[channel]) - variance) <= variance * 1e-5, "variance of \(channel)")
        }
    }

    @Test("Results do not depend on the order of recording or on the division of channels", arguments: cases)
    func order(_ example: Case) throws {
        let blocks = Array(example.blocks.indices)
        let result = try merge(example, order: blocks, part: example.channels)
        #expect(try merge(example, order: blocks.reversed(), part: 64) == result)
        #expect(try merge(example, order: blocks, part: 16) == result)
    }

    @Test("A block of identical rows has variance 0")
    func constant() throws {
        let memory = try AlignedMemory(byteCount: Moments.byteCount(channels: 2, blocks: 1))
        let moments = Moments(memory.base, channels: 2, blocks: 1)
        moments.begin(blocks: 1)
        moments.record(Array(repeating: [0.1, -1e6], count: 300).flatMap { $0 }, rows: 300, block: 0)
        var (mean, variance) = ([Float](repeating: .nan, count: 2), [Float](repeating: .nan, count: 2))
        moments.merge(0..<2, mean: &mean, variance: &variance)
        #expect(mean == [0.1, -1e6] && variance == [0, 0])
    }

    struct Recorder: Sendable, CustomTestStringConvertible {
        let layer: Convolution
        let input: TensorShape
        let algorithm: Algorithm
        /// The number of images in the first and in the second pass.
        let images: (Int, Int)
        var testDescription: String { "\(images.0) and \(images.1) x \(input): \(layer)" }

        init(_ layer: Convolution, over input: TensorShape, as algorithm: Algorithm, images: (Int, Int)) {
            self.layer = layer
            self.input = input
            self.algorithm = algorithm
            self.images = images
        }
    }

    static let recorders = [
        Recorder(
            Convolution(outputChannels: 17, kernelSize: 3, padding: .same, groups: 17),
            over: TensorShape(height: 5, width: 4, channels: 17), as: .direct, images: (6, 2)),
        Recorder(
            Convolution(outputChannels: 19, kernelSize: 3, stride: 2),
            over: TensorShape(height: 11, width: 12, channels: 40),
            as: .im2col, images: (20, 9)),
        Recorder(
            Convolution(outputChannels: 32, kernelSize: 1), over: TensorShape(height: 9, width: 11, channels: 64),
            as: .matrixProduct, images: (25, 3)),
        Recorder(
            Convolution(outputChannels: 24, kernelSize: 3, padding: .same),
            over: TensorShape(height: 13, width: 14, channels: 16), as: .winograd, images: (9, 4)),
        // Two groups of blocks, then one.
        Recorder(
            Convolution(outputChannels: 1824, kernelSize: 3, padding: .same, hasBias: false),
            over: TensorShape(height: 5, width: 5, channels: 16), as: .winograd, images: (29, 15)),
    ]

    @Test("Convolutions record the moments of all outputs, with any number of images", arguments: recorders, [1, 3])
    func recordedByConvolutions(_ recorder: Recorder, workers: Int) throws {
        var net = NetworkBuilder(name: recorder.testDescription, input: recorder.input)
        net.add(recorder.layer, named: "convolution", to: [Network.inputName])
        // The running statistics become those of the batch.
        net.add(BatchNormalization(momentum: 1), named: "norm")
        net.add(GlobalAveragePool())
        let network = try net.network()
        let parameters = try Parameters(ParameterLayout(network))
        let weight = try #require(parameters.layout["convolution.weight"])
        parameters[weight.name] = repeatedValues(weight.parameter.count, "weight")
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: recorder.images.0, mode: .training, workers: Workers(workers)))
        let context = plan.steps[0].context
        #expect(context.outputMoments != nil && context.algorithm == recorder.algorithm)
        let channels = context.output.shape.channels
        for images in [recorder.images.0, recorder.images.1] {
            _ = plan.input.update(from: repeatedValues(images * network.input.count, "images \(images)"))
            plan.forward(count: images)
            let rows = images * context.output.shape.pixels
            let mean = try #require(parameters["norm.runningMean"])
            let variance = try #require(parameters["norm.runningVariance"])
            for channel in stride(from: 0, to: channels, by: max(1, channels / 19)) {
                let column = (0..<rows).map { Double(context.output.values[$0 * channels + channel]) }
                let expected = column.reduce(0, +) / Double(rows)
                let unbiased = column.reduce(0) { $0 + ($1 - expected) * ($1 - expected) } / Double(rows - 1)
                #expect(abs(Double(mean[channel]) - expected) <= 1e-5 * unbiased.squareRoot(), "\(images), \(channel)")
                #expect(abs(Double(variance[channel]) - unbiased) <= 1e-5 * unbiased, "\(images), \(channel)")
            }
        }
    }
}
