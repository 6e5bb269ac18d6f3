import Testing

@testable import ImprintNetwork

/// Tests which operators a plan fuses.
@Suite struct OperatorFusionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let nodes: [Network.Node]
        var frozen: Set<String> = []
        var inputGradient = false
        /// The names of the operations of a plan for training.
        var training: [String] = []
        /// The names of the operations of a plan for prediction, which ignores `frozen`.
        var prediction: [String] = []

        init(
            _ description: String, _ nodes: [Network.Node], frozen: Set<String> = [], inputGradient: Bool = false,
            training: [String], prediction: [String]
        ) {
            testDescription = description
            self.nodes = nodes
            self.frozen = frozen
            self.inputGradient = inputGradient
            self.training = training
            self.prediction = prediction
        }
    }

    private static func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
        Network.Node(name: name, layer: layer, inputs: inputs)
    }

    private static func convolution(_ name: String = "c", _ input: String = Network.inputName) -> Network.Node {
        node(name, Convolution(outputChannels: 3, kernelSize: 1), input)
    }

    private static let pool = MaxPool(kernelSize: 2)

    /// Returns a branch that ends in the norm "n", a shortcut that ends in the norm "m", and more nodes.
    private static func branches(_ rest: Network.Node...) -> [Network.Node] {
        [
            convolution("a"), node("m", BatchNormalization(), "a"), convolution("b"),
            node("n", BatchNormalization(), "b"),
        ] + rest
    }

    /// A convolution, a batch norm, a ReLU and another convolution.
    private static let chain = [
        convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), convolution("d", "r"),
    ]

    /// Two branches with a sum, a ReLU and a convolution after them.
    private static let shortcut = branches(
        node("sum", AddLayer(), "n", "m"), node("r", ReLU(), "sum"), convolution("d", "r"))

    static let fused = [
        Case(
            "norm, ReLU and pool",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), node("p", pool, "r"),
                convolution("d", "p"),
            ], training: ["c", "n+r+p", "d"], prediction: ["c+n+r", "p", "d"]),
        Case(
            "norm and pool", [convolution(), node("n", BatchNormalization(), "c"), node("p", pool, "n")],
            training: ["c", "n+p"], prediction: ["c+n", "p"]),
        Case(
            "two norms in a chain; a second activation after one norm is not fused",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU6(), "n"),
                node("m", BatchNormalization(), "r"), node("s", ReLU(), "m"), node("t", ReLU(), "s"),
            ], training: ["c", "n+r", "m+s", "t"], prediction: ["c+n+r", "m+s", "t"]),
        Case(
            "the later of two branches is fused with the sum", shortcut, training: ["a", "m", "b", "n+sum+r", "d"],
            prediction: ["a+m", "b+n+sum+r", "d"]),
        Case(
            "the order of the sum's inputs has no effect", branches(node("sum", AddLayer(), "m", "n")),
            training: ["a", "m", "b", "n+sum"], prediction: ["a+m", "b+n+sum"]),
        Case(
            "norms in another order than their convolutions",
            [
                convolution("a"), convolution("b"), node("n", BatchNormalization(), "b"),
                node("m", BatchNormalization(), "a"), node("sum", AddLayer(), "n", "m"),
            ], training: ["a", "b", "n", "m+sum"], prediction: ["a+m", "b+n+sum"]),
        Case(
            "a sum with the input; the pool after it is not fused",
            [
                node("n", BatchNormalization(), "input"), node("sum", AddLayer(), "input", "n"),
                node("r", ReLU(), "sum"),
                node("p", pool, "r"),
            ], training: ["n+sum+r", "p"], prediction: ["n+sum+r", "p"]),
        Case(
            "convolutions without norms",
            [
                convolution(), node("r", ReLU(), "c"), convolution("d", "r"), node("sum", AddLayer(), "r", "d"),
                node("s", ReLU6(), "sum"),
            ], training: ["c", "r", "d", "sum", "s"], prediction: ["c+r", "d+sum+s"]),
        Case(
            "a sum before the norm",
            [
                convolution(), node("sum", AddLayer(), "c", "input"), node("n", BatchNormalization(), "sum"),
                node("r", ReLU(), "n"), convolution("d", "r"),
            ], training: ["c", "sum", "n+r", "d"], prediction: ["c+sum", "n+r", "d"]),
        Case(
            "a convolution with two readers",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("sum", AddLayer(), "n", "c"),
                node("r", ReLU(), "sum"),
            ], training: ["c", "n+sum+r"], prediction: ["c", "n+sum+r"]),
        Case(
            "frozen first layers", chain, frozen: ["c", "n", "r"], training: ["c+n+r", "d"],
            prediction: ["c+n+r", "d"]),
        Case(
            "a trainable activation after frozen layers", chain, frozen: ["c", "n"], training: ["c+n+r", "d"],
            prediction: ["c+n+r", "d"]),
        Case(
            "a frozen convolution before a trainable norm", chain, frozen: ["c"], training: ["c", "n+r", "d"],
            prediction: ["c+n+r", "d"]),
        Case(
            "a frozen norm after a trainable convolution", chain, frozen: ["n"], training: ["c", "n+r", "d"],
            prediction: ["c+n+r", "d"]),
        Case(
            "frozen layers with an input gradient", chain, frozen: ["c", "n", "r"], inputGradient: true,
            training: ["c", "n+r", "d"], prediction: ["c+n+r", "d"]),
        Case(
            "frozen branches", shortcut, frozen: ["a", "m", "b", "n"], training: ["a+m", "b+n+sum+r", "d"],
            prediction: ["a+m", "b+n+sum+r", "d"]),
        Case(
            "the later branch is frozen", shortcut, frozen: ["b", "n"], training: ["a", "b+n", "m+sum+r", "d"],
            prediction: ["a+m", "b+n+sum+r", "d"]),
        Case(
            "the earlier branch is frozen", shortcut, frozen: ["a", "m"], training: ["a+m", "b", "n+sum+r", "d"],
            prediction: ["a+m", "b+n+sum+r", "d"]),
        Case(
            "only the later norm is frozen", shortcut, frozen: ["n"], training: ["a", "m", "b", "n+sum+r", "d"],
            prediction: ["a+m", "b+n+sum+r", "d"]),
    ]

    static let activations = [
        Case(
            "a clip with minimum 0",
            [convolution(), node("n", BatchNormalization(), "c"), node("r", ClipLayer(minimum: 0, maximum: 2), "n")],
            training: ["c", "n+r"], prediction: ["c+n+r"]),
        Case(
            "a clip with another minimum",
            [convolution(), node("n", BatchNormalization(), "c"), node("r", ClipLayer(minimum: -1, maximum: 2), "n")],
            training: ["c", "n", "r"], prediction: ["c+n", "r"]),
        Case(
            "swish", [convolution(), node("n", BatchNormalization(), "c"), node("s", Swish(), "n")],
            training: ["c", "n", "s"], prediction: ["c+n+s"]),
        Case(
            "hard swish after a sum",
            [
                convolution(), node("sum", AddLayer(), "c", "input"), node("s", HardSwish(), "sum"),
                convolution("d", "s"),
            ],
            training: ["c", "sum", "s", "d"], prediction: ["c+sum+s", "d"]),
        Case(
            "swish after ReLU",
            [convolution(), node("r", ReLU(), "c"), node("s", Swish(), "r")],
            training: ["c", "r", "s"], prediction: ["c+r", "s"]),
        Case(
            "a broadcast sum with one value per channel",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("m", GlobalAveragePool(), "input"),
                node("sum", AddLayer(), "n", "m"), node("r", ReLU(), "sum"),
            ], training: ["c", "n", "m", "sum", "r"], prediction: ["c+n", "m", "sum", "r"]),
        Case(
            "a pool whose output size is rounded up",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"),
                node("p", MaxPool(kernelSize: 2, roundsUp: true), "r"),
            ], training: ["c", "n+r", "p"], prediction: ["c+n+r", "p"]),
    ]

    static let unfused =
        [
            Case(
                "the norm is the output", [convolution(), node("n", BatchNormalization(), "c")],
                training: ["c", "n"], prediction: ["c+n"]),
            Case(
                "a norm with two readers",
                [
                    convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"),
                    node("s", AddLayer(), "r", "n"),
                ], training: ["c", "n", "r", "s"], prediction: ["c+n", "r", "s"]),
            Case(
                "a reader that reads the norm twice",
                [convolution(), node("n", BatchNormalization(), "c"), node("s", AddLayer(), "n", "n")],
                training: ["c", "n", "s"], prediction: ["c+n", "s"]),
            Case(
                "a sum of three", branches(node("sum", AddLayer(), "n", "m", "a")),
                training: ["a", "m", "b", "n", "sum"], prediction: ["a", "m", "b+n", "sum"]),
            Case(
                "a pool whose input has another reader",
                [
                    convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), node("p", pool, "r"),
                    node("f", GlobalAveragePool(), "r"), node("g", GlobalAveragePool(), "p"),
                    node("s", AddLayer(), "f", "g"),
                ], training: ["c", "n+r", "p", "f", "g", "s"], prediction: ["c+n+r", "p", "f", "g", "s"]),
            Case(
                "an activation other than ReLU",
                [convolution(), node("n", BatchNormalization(), "c"), node("r", LeakyReLU(), "n")],
                training: ["c", "n", "r"], prediction: ["c+n", "r"]),
            Case(
                "a norm before the convolution",
                [node("n", BatchNormalization(), "input"), convolution("c", "n")],
                training: ["n", "c"], prediction: ["n", "c"]),
        ]
        + [
            MaxPool(kernelSize: 3, stride: 2), MaxPool(kernelSize: 2, stride: 1),
            MaxPool(kernelSize: 2, padding: .all(1)),
            MaxPool(kernelSize: 2, padding: .same), MaxPool(kernelSize: Size2D(height: 1, width: 2)),
        ].map { pool in
            Case(
                "\(pool)",
                [convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), node("p", pool, "r")],
                training: ["c", "n+r", "p"], prediction: ["c+n+r", "p"])
        }

    private func plan(_ example: Case, _ mode: ExecutionPlan.Mode) throws -> ExecutionPlan {
        let network = try Network(
            name: example.testDescription, input: TensorShape(height: 5, width: 6, channels: 3), nodes: example.nodes)
        return try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1),
            options: mode == .prediction
                ? ExecutionPlan.Options(batchSize: 2)
                : ExecutionPlan.Options(
                    batchSize: 2, mode: .training, frozen: example.frozen, inputGradient: example.inputGradient))
    }

    @Test(
        "In training, norms and frozen convolutions are fused with the operators after them",
        arguments: fused + activations + unfused)
    func training(_ example: Case) throws {
        #expect(try plan(example, .training).summary.map(\.name) == example.training)
    }

    @Test(
        "In prediction, convolutions and the remaining norms are fused with the operators after them",
        arguments: fused + activations + unfused)
    func prediction(_ example: Case) throws {
        #expect(try plan(example, .prediction).summary.map(\.name) == example.prediction)
    }

    @Test(
        "Each operation reads the outputs of earlier operations, the shortcut last",
        arguments: fused + activations + unfused)
    func sources(_ example: Case) throws {
        for mode in [ExecutionPlan.Mode.training, .prediction] {
            let plan = try plan(example, mode)
            for (index, step) in plan.steps.enumerated() {
                let nodes = step.operation.nodeIndices
                let outside = nodes.flatMap { plan.network.sources[$0] }.filter { !nodes.contains($0) }
                let read = step.operation.sources.map { $0 < 0 ? -1 : plan.steps[$0].operation.nodeIndices.last }
                #expect(read == outside)
                #expect(step.operation.sources.allSatisfy { $0 < index })
            }
            #expect(plan.steps.flatMap(\.operation.nodeIndices).sorted() == Array(plan.network.nodes.indices))
        }
    }

    @Test("Only convolutions whose weights do not change have packed weights")
    func packedWeights() throws {
        func prepacked(_ frozen: Set<String>, _ mode: ExecutionPlan.Mode = .training) throws -> [String] {
            let example = Case("", Self.chain, frozen: frozen, training: [], prediction: [])
            return try plan(example, mode).steps.filter { $0.kernel is PrepackedConvolution }.map(\.name)
        }
        #expect(try prepacked([]) == [])
        #expect(try prepacked(["c"]) == ["c"])
        #expect(try prepacked(["d"]) == [])
        #expect(try prepacked(["c", "n"]) == ["c+n+r"])
        #expect(try prepacked([], .prediction) == ["c+n+r", "d"])
    }

    @Test("The summary has the kind of the first fused layer and the output shape of the last")
    func summary() throws {
        let training = try plan(Self.fused[0], .training).summary[1]
        #expect(training.kind == "batchNormalization")
        #expect(training.output == TensorShape(height: 2, width: 3, channels: 3))
        #expect(training.parameterCount == 6)
        let prediction = try plan(Self.fused[0], .prediction).summary[0]
        #expect(prediction.kind == "convolution")
        #expect(prediction.output == TensorShape(height: 5, width: 6, channels: 3))
        #expect(prediction.parameterCount == 3 * 3 + 3 + 6)
    }

    @Test("The input gradient of a norm overwrites its input, unless the input is read again")
    func gradientInPlace() throws {
        func isInPlace(_ nodes: [Network.Node], at step: Int) throws -> Bool {
            let input = try plan(Case("", nodes, training: [], prediction: []), .training).steps[step].context.input
            return input.gradient == input.values
        }
        func norm(_ input: String) -> Network.Node { Self.node("n", BatchNormalization(), input) }
        #expect(try isInPlace([Self.convolution(), norm("c")], at: 1))
        #expect(try isInPlace([Self.convolution(), norm("c"), Self.node("r", ReLU(), "n")], at: 1))
        // Not in place: sigmoid reads its output again, the second input has two readers, the third is the network's input.
        #expect(try !isInPlace([Self.convolution(), Self.node("s", Sigmoid(), "c"), norm("s")], at: 2))
        #expect(try !isInPlace([Self.convolution(), norm("c"), Self.node("s", AddLayer(), "n", "c")], at: 1))
        let network = try Network(
            name: "norm", input: TensorShape(channels: 3), nodes: [norm(Network.inputName)])
        let first = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 2, mode: .training, inputGradient: true))
        let input = first.steps[0].context.input
        #expect(input.gradient != nil && input.gradient != input.values)
    }
}
