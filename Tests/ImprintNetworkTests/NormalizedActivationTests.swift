import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares fused normalization, sum, activation and pool with the separate formulas in double precision.
@Suite struct NormalizedActivationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let height: Int
        let width: Int
        let channels: Int
        let batch: Int
        let ceiling: Float?
        let hasShortcut: Bool
        let isPooled: Bool
        var usesRunningStatistics = false
        var isFrozen = false
        var hasRecordedMoments = false

        var input: TensorShape { TensorShape(height: height, width: width, channels: channels) }
        var testDescription: String {
            "\(batch) x \(input)\(hasShortcut ? " + shortcut" : ""), ceiling \(ceiling.map { "\($0)" } ?? "none")"
                + (isPooled ? ", pooled" : "") + (usesRunningStatistics ? ", running statistics" : "")
                + (isFrozen ? ", frozen" : "") + (hasRecordedMoments ? ", recorded moments" : "")
        }

        /// Returns the layers after one that multiplies the input by 3, and one that multiplies it by −2 for the shortcut.
        func network() throws -> Network {
            var net = NetworkBuilder(name: testDescription, input: input)
            net.add(Multiple(records: hasRecordedMoments), named: "x", to: [Network.inputName])
            if hasShortcut { net.add(Multiple(factor: -2), named: "shortcut", to: [Network.inputName]) }
            net.add(
                BatchNormalization(epsilon: 1e-3, usesRunningStatistics: usesRunningStatistics), named: "norm",
                to: ["x"])
            if hasShortcut { net.add(AddLayer(), named: "sum", to: ["norm", "shortcut"]) }
            if ceiling == .infinity { net.add(ReLU(), named: "activation") }
            if ceiling == 6 { net.add(ReLU6(), named: "activation") }
            if isPooled { net.add(MaxPool(kernelSize: 2), named: "pool") }
            return try net.network()
        }
    }

    static let cases: [Case] = {
        var cases: [Case] = []
        for (channels, size) in [(1, (5, 7)), (3, (4, 4)), (15, (3, 2)), (16, (5, 4)), (17, (2, 5)), (33, (7, 3))] {
            for batch in [1, 3] {
                for ceiling in [nil, 6, Float.infinity] {
                    for (hasShortcut, isPooled) in [(false, false), (true, false), (false, true)] {
                        cases.append(
                            Case(
                                height: size.0, width: size.1, channels: channels, batch: batch, ceiling: ceiling,
                                hasShortcut: hasShortcut, isPooled: isPooled))
                    }
                }
            }
        }
        for (hasShortcut, isPooled) in [(false, false), (true, false), (false, true)] {
            var example = Case(
                height: 5, width: 7, channels: 17, batch: 3, ceiling: 6, hasShortcut: hasShortcut, isPooled: isPooled)
            example.usesRunningStatistics = true
            cases.append(example)
            example.isFrozen = true
            cases.append(example)
            (example.usesRunningStatistics, example.isFrozen, example.hasRecordedMoments) = (false, false, true)
            cases.append(example)
            // More than one block of moments, chunk of rows and part of a sum; more channels than are merged at once.
            cases.append(
                Case(
                    height: 23, width: 21, channels: 130, batch: 4, ceiling: .infinity, hasShortcut: hasShortcut,
                    isPooled: isPooled))
        }
        return cases
    }()

    @Test("All combinations of fused operators agree with the formula", arguments: cases, [1, 3])
    func formula(_ example: Case, workers: Int) throws {
        let network = try example.network()
        let parameters = try randomParameters(network, seed: 4)
        func transform(_ name: String, _ value: (Float) -> Float) throws {
            parameters[name] = try #require(parameters[name]).map(value)
        }
        try transform("norm.scale") { 3 * $0 }
        try transform("norm.runningVariance") { abs($0) + 0.5 }
        let names = ["scale", "shift", "runningMean", "runningVariance"]
        let before = try names.map { try #require(parameters["norm.\($0)"]).map(Double.init) }
        let frozen = example.isFrozen ? Set(network.nodes.map(\.name)) : []
        // The plan has space for one more image than the batch.
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: example.batch + 1, mode: .training, workers: Workers(workers), frozen: frozen,
                inputGradient: true))
        #expect(plan.steps.count == (example.hasShortcut ? 3 : 2))
        let step = plan.steps[plan.steps.count - 1]
        #expect((step.context.inputMoments != nil) == example.hasRecordedMoments)

        plan.poison(keeping: [])
        let input = randomValues(example.batch * network.input.count, "input")
        let slopes = randomValues(example.batch * network.output.count, "slopes")
        _ = plan.input.update(from: input)
        plan.forward(count: example.batch)
        plan.poison(keeping: plan.readByBackward)
        plan.parameterGradients.update(repeating: .nan)
        _ = plan.outputGradient.update(from: slopes)
        let output = Array(plan.output[..<slopes.count])
        plan.backward(count: example.batch)

        let expected = Formula(
            example, input: input.map(Double.init), outputGradient: slopes.map(Double.init), parameters: before)
        func expectClose(_ actual: some Sequence<Float>, _ expected: [Double], _ name: String) {
            ImprintNetworkTests.expectClose(
                actual, expected.map { Float($0) }, "\(network.name): \(name)", tolerance: 2e-5)
        }
        expectClose(output, expected.output, "output")
        let gradient = try #require(plan.inputGradient)
        expectClose(gradient[..<input.count], expected.inputGradient, "input gradient")
        for (name, expected) in zip(names, expected.parameterGradients) {
            let range = try #require(parameters.layout["norm.\(name)"]).range
            if example.isFrozen {
                #expect(plan.parameterGradients[range].allSatisfy { $0.isNaN })
            } else {
                expectClose(plan.parameterGradients[range], expected, "gradient of \(name)")
            }
        }
        for (name, expected) in zip(names[2...], expected.runningStatistics) {
            expectClose(try #require(parameters["norm.\(name)"]), expected, name)
        }
    }

    @Test("NaN is propagated, with and without a pool", arguments: [false, true])
    func nan(isPooled: Bool) throws {
        var example = Case(
            height: 4, width: 4, channels: 17, batch: 1, ceiling: 6, hasShortcut: false, isPooled: isPooled)
        example.usesRunningStatistics = true
        let network = try example.network()
        let plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 1, mode: .training))
        // Every pixel of the first window.
        for pixel in isPooled ? [0, 1, 4, 5] : [0] {
            plan.input.update(repeating: 1)
            for channel in [0, 16] { plan.input[pixel * 17 + channel] = .nan }
            plan.forward(count: 1)
            #expect(plan.output.indices.filter { plan.output[$0].isNaN } == [0, 16], "pixel \(pixel)")
        }
    }
}

/// A layer y = factor · x, which can record the moments of its output in blocks of five rows.
private struct Multiple: Layer, LayerKernel {
    static let kind = "multiple"
    var factor: Float = 3
    var records = false

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape { inputs[0] }
    var backwardReads: BackwardReads { [] }
    func momentBlocks(_ request: MemoryRequest) -> Int? {
        records ? (request.batch * request.output.pixels + 4) / 5 : nil
    }

    func forward(_ context: LayerContext, batch: Int) {
        let (rows, channels) = (batch * context.output.shape.pixels, context.output.shape.channels)
        let blocks = (rows + 4) / 5
        if context.worker.index == 0 { context.outputMoments?.begin(blocks: blocks) }
        context.worker.forEachChunk(blocks) { block in
            let block = (first: 5 * block, count: min(5, rows - 5 * block), index: block)
            let start = block.first * channels
            for index in start..<(start + block.count * channels) {
                context.output.values[index] = factor * context.input.values[index]
            }
            context.outputMoments?.record(context.output.values + start, rows: block.count, block: block.index)
        }
    }

    func backward(_ context: LayerContext, batch: Int) {
        context.worker.onFirstThread {
            guard let dx = context.input.gradient else { return }
            for index in 0..<(batch * context.input.shape.count) { dx[index] = factor * context.outputGradient[index] }
        }
    }
}

/// The results of a case of `NormalizedActivationTests`, computed layer by layer in double precision.
private struct Formula {
    var output: [Double] = []
    var inputGradient: [Double] = []
    var parameterGradients: [[Double]] = []
    var runningStatistics: [[Double]]

    init(
        _ example: NormalizedActivationTests.Case, input: [Double], outputGradient: [Double], parameters: [[Double]]
    ) {
        let x = input.map { 3 * $0 }
        let (channels, batch) = (example.channels, example.batch)
        let naive = NaiveBatchNormalization(
            channels: channels, epsilon: Double(Float(1e-3)), usesRunningStatistics: example.usesRunningStatistics)
        func normalize(_ gradient: [Double]) -> NaiveResult {
            naive.run(input: x, outputGradient: gradient, parameters: parameters, batch: batch)
        }
        let sum = zip(normalize(x).output, input).map { $0 - (example.hasShortcut ? 2 * $1 : 0) }
        let ceiling = example.ceiling.map(Double.init)
        let z = sum.map { value in ceiling.map { min(max(value, 0), $0) } ?? value }

        var gradient = outputGradient
        output = z
        if example.isPooled {
            let window = NaiveWindow(input: example.input, kernel: 2, stride: 2, padding: .valid)
            let pooled = NaiveMaxPool(window: window).run(
                input: z, outputGradient: outputGradient, parameters: [], batch: batch)
            (output, gradient) = (pooled.output, pooled.inputGradient)
        }
        gradient = zip(gradient, sum).map { slope, value in
            ceiling.map { value > 0 && value < $0 ? slope : 0 } ?? slope
        }
        let result = normalize(gradient)
        parameterGradients = result.parameterGradients
        inputGradient = zip(result.inputGradient, gradient).map { 3 * $0 - (example.hasShortcut ? 2 * $1 : 0) }

        runningStatistics = Array(parameters[2...])
        guard !example.usesRunningStatistics else { return }
        for channel in 0..<channels {
            let column = stride(from: channel, to: x.count, by: channels).map { x[$0] }
            let count = Double(column.count)
            let mean = column.reduce(0, +) / count
            let unbiased = column.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / (count - 1)
            runningStatistics[0][channel] += 0.1 * (mean - runningStatistics[0][channel])
            runningStatistics[1][channel] += 0.1 * (unbiased - runningStatistics[1][channel])
        }
    }
}
