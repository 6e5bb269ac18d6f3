import ImprintCore
import Testing

@testable import ImprintNetwork

/// Sums over the images of a batch.
@Suite struct ImageSumTests {
    private static let count = (1 << 16) + 3

    /// Values whose sum depends on the order of the additions.
    private static func value(_ image: Int, _ element: Int) -> Float {
        Float((image * 7919 + element * 104_729) % 1009 - 500) * (image % 3 == 0 ? 1 : 1e-4)
    }

    private static func sum(_ images: Range<Int>, _ element: Int) -> Float {
        images.reduce(0) { $0 + value($1, element) }
    }

    /// Adds the leaves of a tree recursively.
    private static func reference(_ leaves: Range<Int>, of tree: ImageSum, _ element: Int) -> Float {
        guard leaves.count > 1 else { return sum(tree.images(leaves.lowerBound), element) }
        let middle = leaves.lowerBound + leaves.count / 2
        return reference(leaves.lowerBound..<middle, of: tree, element)
            + reference(middle..<leaves.upperBound, of: tree, element)
    }

    private final class Summation: ThreadPoolTask {
        let result = UnsafeMutablePointer<Float>.allocate(capacity: count)
        private let batch: Int
        private let scratch: UnsafeMutablePointer<Float>

        init(batch: Int, workers: Int) {
            self.batch = batch
            scratch = .allocate(capacity: ImageSum.scratchCount(count, workers: workers))
        }

        deinit {
            result.deallocate()
            scratch.deallocate()
        }

        func run(_ worker: Worker) {
            ImageSum.run(
                BatchPart(wholeBatch: batch), count: count, into: result, scratch: scratch, worker: worker
            ) { images, target in
                for element in 0..<count { target[element] = sum(images, element) }
            }
        }
    }

    @Test(
        "The order of the additions is a binary tree, for any number of threads",
        arguments: [1, 5, 16, 33], [1, 2, 3, 5, 16, 20])
    func tree(batch: Int, threads: Int) {
        let pool = ThreadPool(count: threads)
        let task = Summation(batch: batch, workers: pool.count)
        pool.run(task)
        let tree = ImageSum(leaves: ImageSum.sharedLeaves, of: BatchPart(wholeBatch: batch))
        for element in [0, 1, 4096, Self.count - 1] {
            #expect(task.result[element] == Self.reference(0..<tree.leaves, of: tree, element))
        }
    }

    @Test("A thread adds its leaves in the order of a binary tree", arguments: [1, 7, 8, 15, 16, 32, 100])
    func depthFirst(batch: Int) {
        let count = 3
        var result = [Float](repeating: .nan, count: count)
        var buffers = [Float](repeating: .nan, count: ImageSum.bufferCount(count))
        result.withUnsafeMutableBufferPointer { result in
            buffers.withUnsafeMutableBufferPointer { buffers in
                guard let target = result.baseAddress, let rest = buffers.baseAddress else { return }
                ImageSum.run(BatchPart(wholeBatch: batch), count: count, into: target, buffers: rest) {
                    images, target in
                    for element in 0..<count { target[element] = Self.sum(images, element) }
                }
            }
        }
        let tree = ImageSum(leaves: ImageSum.leavesPerThread(batch: batch), of: BatchPart(wholeBatch: batch))
        #expect(tree.leaves == [1: 1, 7: 1, 8: 2, 15: 2, 16: 4, 32: 8, 100: 8][batch])
        #expect(result == (0..<count).map { Self.reference(0..<tree.leaves, of: tree, $0) })
    }

    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let input: TensorShape
        let layer: any Layer
    }

    private static func example(_ name: String, _ size: Int, _ channels: Int, _ layer: any Layer) -> Example {
        Example(
            testDescription: name, input: TensorShape(height: size, width: size, channels: channels), layer: layer)
    }

    static let examples = [
        example(
            "3x3 convolution", 9, 3, Convolution(outputChannels: 20, kernelSize: 3, padding: .same, hasBias: false)),
        example(
            "3x3 convolution with many weights", 7, 90,
            Convolution(outputChannels: 100, kernelSize: 3, stride: 2, padding: .same, hasBias: false)),
        example("1x1 convolution", 6, 20, Convolution(outputChannels: 33, kernelSize: 1, hasBias: false)),
        example(
            "1x1 convolution with many weights", 5, 270, Convolution(outputChannels: 290, kernelSize: 1, hasBias: false)
        ),
        example("grouped convolution", 6, 8, Convolution(outputChannels: 12, kernelSize: 3, groups: 4, hasBias: false)),
        example(
            "depthwise convolution", 7, 24,
            Convolution(outputChannels: 24, kernelSize: 3, padding: .same, groups: 24, hasBias: false)),
        example("Winograd", 10, 24, Convolution(outputChannels: 32, kernelSize: 3, padding: .same, hasBias: false)),
    ]

    // The layers have no bias, because its gradient is a sum of doubles that is rounded at the end. For a similar reason, the examples do not include
    // Winograd with many weights, which transforms the sum back at the end.
    @Test("The gradient of a batch is the sum of the gradients of its halves, bit by bit", arguments: examples)
    func halves(_ example: Example) throws {
        var builder = NetworkBuilder(name: "layer", input: example.input)
        builder.add(example.layer, named: "layer")
        let network = try builder.network()
        let images = 16
        let input = randomValues(images * network.input.count, "input")
        let outputGradient = randomValues(images * network.output.count, "output gradient")
        func gradients(_ range: Range<Int>) throws -> [Float] {
            let parameters = try Parameters(network, seed: 3)
            let plan = try ExecutionPlan(
                network, parameters: parameters,
                options: ExecutionPlan.Options(batchSize: range.count, mode: .training, threads: 2))
            func part(_ values: [Float], _ count: Int) -> ArraySlice<Float> {
                values[(range.lowerBound * count)..<(range.upperBound * count)]
            }
            _ = plan.input.update(from: part(input, network.input.count))
            plan.forward(count: range.count)
            _ = plan.outputGradient.update(from: part(outputGradient, network.output.count))
            plan.backward(count: range.count)
            return Array(plan.parameterGradients)
        }
        let (first, second) = (try gradients(0..<images / 2), try gradients(images / 2..<images))
        let all = try gradients(0..<images)
        #expect(all.contains { $0 != 0 })
        expectBitwiseEqual(zip(first, second).map { $0 + $1 }, all, "gradients")
    }
}
