import CImprintKernels
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Tests the overview of plans and networks, and the description of the engine.
@Suite struct PlanOverviewTests {
    struct Count: Sendable, CustomTestStringConvertible {
        let layer: any Layer
        let inputs: [TensorShape]
        let multiplications: Int
        var testDescription: String { "\(layer) over \(inputs)" }
    }

    @Test(
        "Multiplications are counted for one image",
        arguments: [
            Count(
                layer: Convolution(outputChannels: 8, kernelSize: 3, padding: .same),
                inputs: [TensorShape(height: 5, width: 7, channels: 4)], multiplications: 5 * 7 * 8 * 9 * 4),
            Count(
                layer: Convolution(outputChannels: 6, kernelSize: Size2D(height: 1, width: 5), stride: 2, groups: 2),
                inputs: [TensorShape(height: 5, width: 9, channels: 4)], multiplications: 3 * 3 * 6 * 5 * 2),
            Count(
                layer: Convolution(outputChannels: 4, kernelSize: 3, dilation: 2, groups: 4),
                inputs: [TensorShape(height: 6, width: 5, channels: 4)], multiplications: 2 * 1 * 4 * 9),
            Count(layer: Dense(outputChannels: 10), inputs: [TensorShape(channels: 7)], multiplications: 70),
            Count(layer: BatchNormalization(), inputs: [TensorShape(channels: 7)], multiplications: 0),
        ])
    func multiplications(_ example: Count) {
        #expect(example.layer.multiplications(for: example.inputs) == example.multiplications)
    }

    /// The paper on MobileNet states 569 million; ResNet-50 with the stride in its 3x3 convolutions has 4.1 billion.
    @Test(
        "Ready-made networks have the published number of multiplications",
        arguments: [("mobilenet-v1", 568_740_352), ("resnet-50", 4_089_184_256)],
        [ExecutionPlan.Mode.prediction, .training])
    func knownNetworks(_ example: (name: String, multiplications: Int), mode: ExecutionPlan.Mode) throws {
        let network = try Network.named(example.name, labels: 1000)
        let overview = ExecutionPlan.Overview(network, options: ExecutionPlan.Options(batchSize: 3, mode: mode))
        #expect(overview.multiplications == example.multiplications)
        #expect(overview.layers.reduce(0) { $0 + $1.multiplications } == example.multiplications)
    }

    /// The parameter count of ResNet-50 is the same as in PyTorch.
    @Test(
        "The summary of a network lists every layer and has the totals of its plan",
        arguments: [("mobilenet-v1", 4_231_976), ("resnet-50", 25_557_032)])
    func layers(_ example: (name: String, parameters: Int)) throws {
        let network = try Network.named(example.name, labels: 1000)
        let summary = network.summary()
        #expect(summary.parameterCount == example.parameters)
        #expect(ParameterLayout(network).trainableCount == example.parameters)
        #expect(summary.layers.map(\.name) == network.nodes.map(\.name))
        #expect(summary.layers.map(\.output) == network.shapes)
        #expect(summary.layers.map(\.inputs) == network.nodes.map(\.inputs))
        #expect(summary.layers.last?.kind == "softmax" && summary.layers.last?.multiplications == 0)
        let plan = ExecutionPlan.Overview(network, options: ExecutionPlan.Options(batchSize: 1))
        #expect(summary.multiplications == plan.multiplications)
        let memory = Network.PredictionMemory(network)
        #expect(memory.arenaByteCount == plan.arenaByteCount)
        #expect(memory.transformedWeightsByteCount == plan.transformedWeightsByteCount)
        #expect(memory.parameterByteCount == 4 * ParameterLayout(network).count)
        #expect(
            memory.byteCount == plan.arenaByteCount + plan.transformedWeightsByteCount + memory.parameterByteCount)
    }

    @Test("The description of a summary is a table with one line per layer, however the layers are named")
    func table() throws {
        var builder = NetworkBuilder(name: "small", input: TensorShape(height: 8, width: 8, channels: 3))
        builder.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same), named: "first\nlayer\u{1B}[31m")
        builder.add(BatchNormalization(), named: "norm")
        builder.add(ReLU(), named: String(repeating: "a", count: 20) + String(repeating: "z", count: 40))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Dense(outputChannels: 2), named: "head")
        let summary = try builder.network().summary()
        #expect(summary.layers.map(\.parameterCount) == [448, 32, 0, 0, 34])
        #expect(summary.layers.map(\.multiplications) == [27648, 0, 0, 0, 32])
        #expect(
            summary.description == #"""
                layer                                         kind                output  parameters  MFLOP
                first\u{A}layer\u{1B}[31m                     convolution         8x8x16         448   0.06
                norm                                          batchNormalization  8x8x16          32      –
                aaaaaaaa…zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz  relu                8x8x16           –      –
                mean                                          globalAveragePool   1x1x16           –      –
                head                                          dense               1x1x2           34  <0.01

                total        514 parameters, <0.001 GFLOP per image
                """#)
    }

    @Test(
        "The overview has the memory sizes of the plan", arguments: [ExecutionPlan.Mode.prediction, .training],
        [1, 2])
    func memory(mode: ExecutionPlan.Mode, threads: Int) throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 33, width: 0.5)
        let options = ExecutionPlan.Options(batchSize: 3, mode: mode, workers: Workers(threads))
        let overview = ExecutionPlan.Overview(network, options: options)
        let plan = try ExecutionPlan(network, parameters: Parameters(network, seed: 1), options: options)
        #expect(overview.arenaByteCount == plan.arenaByteCount)
        #expect(overview.layers == plan.summary)
        #expect(overview.layers.map(\.name) == plan.steps.map(\.name))
        let parameters = plan.parameters.layout
        #expect(overview.gradientByteCount == (mode == .training ? 4 * parameters.trainableCount : 0))
        #expect(overview.layers.reduce(0) { $0 + $1.parameterCount } == parameters.trainableCount)
        for layer in overview.layers {
            #expect(layer.activationByteCount == 3 * 4 * layer.output.count)
            // The arena contains the output and the scratch memory of a layer at the same time.
            #expect(layer.activationByteCount + layer.scratchByteCount <= overview.arenaByteCount)
        }
        #expect(
            overview.transformedWeightsByteCount >= overview.layers.reduce(0) { $0 + $1.transformedWeightsByteCount })
        #expect((overview.transformedWeightsByteCount > 0) == (mode == .prediction))
    }

    @Test("The overview has the precision of each operation", arguments: [Precision.float32, .bfloat16])
    func precisions(precision: Precision) throws {
        var builder = NetworkBuilder(name: "precisions", input: TensorShape(height: 8, width: 8, channels: 16))
        builder.add(Convolution(outputChannels: 16, kernelSize: 1, hasBias: false), named: "matrix product")
        builder.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same, hasBias: false), named: "winograd")
        builder.add(Convolution(outputChannels: 3, kernelSize: 1, hasBias: false), named: "few channels")
        var options = ExecutionPlan.Options(batchSize: 1)
        options.precision = precision
        let overview = ExecutionPlan.Overview(try builder.network(), options: options)
        #expect(overview.layers.map(\.algorithm) == [.matrixProduct, .winograd, .matrixProduct])
        #expect(overview.layers.map(\.precision) == [precision, .float32, .float32])
    }

    @Test("The entry of a convolution includes the layers folded into it")
    func folded() throws {
        var builder = NetworkBuilder(name: "folded", input: TensorShape(height: 8, width: 8, channels: 16))
        builder.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same, hasBias: false), named: "c")
        builder.add(BatchNormalization(), named: "n")
        builder.add(AddLayer(), named: "s", to: ["n", Network.inputName])
        builder.add(ReLU(), named: "r")
        let overview = ExecutionPlan.Overview(try builder.network(), options: ExecutionPlan.Options(batchSize: 2))
        let layer = try #require(overview.layers.first)
        #expect(overview.layers.count == 1)
        #expect(layer.name == "c+n+s+r")
        #expect(layer.kind == "convolution")
        #expect(layer.algorithm == .winograd)
        #expect(
            layer.inputs == [
                TensorShape(height: 8, width: 8, channels: 16), TensorShape(height: 8, width: 8, channels: 16),
            ])
        #expect(layer.parameterCount == 16 * 16 * 9 + 32)
        #expect(layer.multiplications == 8 * 8 * 16 * 9 * 16)
        // A bias for each channel, and 36 matrices of 16x16.
        #expect(layer.transformedWeightsByteCount >= 4 * (16 + 36 * 256))
    }

    @Test("The overview of a plan that exceeds any memory does not overflow")
    func beyondMemory() throws {
        // Nine convolutions of 2¹⁵ x 2¹⁵ pixels with a kernel of the same size have more multiplications than Int.max.
        var builder = NetworkBuilder(name: "immense", input: TensorShape(height: 1 << 15, width: 1 << 15, channels: 1))
        for _ in 0..<9 {
            builder.add(Convolution(outputChannels: 1, kernelSize: Size2D(1 << 15), padding: .same, hasBias: false))
        }
        let network = try builder.network()
        let overview = ExecutionPlan.Overview(
            network, options: ExecutionPlan.Options(batchSize: 1 << 16, mode: .training))
        #expect(overview.multiplications == .max)
        #expect(overview.layers.allSatisfy { $0.multiplications == 1 << 60 })
        #expect(overview.arenaByteCount > 1 << 48)
        #expect(network.summary().multiplications == .max)
    }

    @Test("The engine describes the kernels of OpenBLAS and the vector instructions of the other loops")
    func engine() {
        #expect(Engine.current.matrixKernels == GEMM.kernels)
        #expect(["AVX-512", "AVX2", "SSE2", "NEON", "none"].contains(Engine.current.vectorInstructions))
        #if os(Linux) && arch(x86_64)
            #expect((Engine.current.vectorInstructions == "AVX-512") == (imprint_kernels_use_avx512() != 0))
        #endif
        #expect(
            "\(Engine.current)"
                == "OpenBLAS \(GEMM.kernels) kernels, vector instructions: \(Engine.current.vectorInstructions)")
    }
}
