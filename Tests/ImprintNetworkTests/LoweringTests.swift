import Testing

@testable import ImprintNetwork

/// Which nodes a plan computes together.
@Suite struct LoweringTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let nodes: [Network.Node]
        var frozen: Set<String> = []
        /// The names of the operations.
        let operations: [String]

        init(_ description: String, _ nodes: [Network.Node], frozen: Set<String> = [], gives operations: [String]) {
            testDescription = description
            self.nodes = nodes
            self.frozen = frozen
            self.operations = operations
        }
    }

    private static func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
        Network.Node(name: name, layer: layer, inputs: inputs)
    }

    private static func convolution(_ name: String = "c", _ input: String = Network.inputName) -> Network.Node {
        node(name, Convolution(outputChannels: 3, kernelSize: 1), input)
    }

    private static let pool = MaxPool(kernelSize: 2)

    /// The branch ends in "n"; the shortcut is "m", a norm too.
    private static func branches(_ rest: Network.Node...) -> [Network.Node] {
        [
            convolution("a"), node("m", BatchNormalization(), "a"), convolution("b"),
            node("n", BatchNormalization(), "b"),
        ] + rest
    }

    static let fused = [
        Case(
            "norm, ReLU and pool",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), node("p", pool, "r"),
                convolution("d", "p"),
            ], gives: ["c", "n+r+p", "d"]),
        Case(
            "norm and pool", [convolution(), node("n", BatchNormalization(), "c"), node("p", pool, "n")],
            gives: ["c", "n+p"]),
        Case(
            "two in a row, and the second is not the activation's",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU6(), "n"),
                node("m", BatchNormalization(), "r"), node("s", ReLU(), "m"), node("t", ReLU(), "s"),
            ], gives: ["c", "n+r", "m+s", "t"]),
        Case(
            "the later of two norms takes the sum",
            branches(node("sum", Add(), "n", "m"), node("r", ReLU(), "sum")), gives: ["a", "m", "b", "n+sum+r"]),
        Case(
            "whatever the order of the sum's inputs", branches(node("sum", Add(), "m", "n")),
            gives: ["a", "m", "b", "n+sum"]),
        Case(
            "the earlier one takes it where the later one is frozen",
            branches(node("sum", Add(), "n", "m"), node("r", ReLU(), "sum")), frozen: ["n"],
            gives: ["a", "b", "n", "m+sum+r"]),
        Case(
            "a sum with the input and no pool behind it",
            [
                node("n", BatchNormalization(), "input"), node("sum", Add(), "input", "n"), node("r", ReLU(), "sum"),
                node("p", pool, "r"),
            ], gives: ["n+sum+r", "p"]),
        Case(
            "frozen together",
            [
                convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"),
                convolution("d", "r"),
            ], frozen: ["c", "n", "r"], gives: ["c", "n+r", "d"]),
    ]

    static let apart =
        [
            Case(
                "the norm is the result", [convolution(), node("n", BatchNormalization(), "c")], gives: ["c", "n"]),
            Case(
                "two readers",
                [
                    convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"),
                    node("s", Add(), "r", "n"),
                ], gives: ["c", "n", "r", "s"]),
            Case(
                "one reader that reads twice",
                [convolution(), node("n", BatchNormalization(), "c"), node("s", Add(), "n", "n")],
                gives: ["c", "n", "s"]),
            Case(
                "a sum of three", branches(node("sum", Add(), "n", "m", "a")), gives: ["a", "m", "b", "n", "sum"]),
            Case(
                "a frozen norm before an activation that is not",
                [
                    convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"),
                    convolution("d", "r"),
                ], frozen: ["n"], gives: ["c", "n", "r", "d"]),
            Case(
                "a pool that is read with what it pools",
                [
                    convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), node("p", pool, "r"),
                    node("f", GlobalAveragePool(), "r"), node("g", GlobalAveragePool(), "p"),
                    node("s", Add(), "f", "g"),
                ], gives: ["c", "n+r", "p", "f", "g", "s"]),
            Case(
                "another activation",
                [convolution(), node("n", BatchNormalization(), "c"), node("r", LeakyReLU(), "n")],
                gives: ["c", "n", "r"]),
        ]
        + [
            MaxPool(kernelSize: 3, stride: 2), MaxPool(kernelSize: 2, stride: 1),
            MaxPool(kernelSize: 2, padding: .all(1)),
            MaxPool(kernelSize: 2, padding: .same), MaxPool(kernelSize: Size(height: 1, width: 2)),
        ].map { pool in
            Case(
                "\(pool)",
                [convolution(), node("n", BatchNormalization(), "c"), node("r", ReLU(), "n"), node("p", pool, "r")],
                gives: ["c", "n+r", "p"])
        }

    private func plan(_ example: Case, _ mode: Plan.Mode) throws -> Plan {
        let network = try Network(
            name: example.testDescription, input: Shape(height: 5, width: 6, channels: 3), nodes: example.nodes)
        return try Plan(
            network, parameters: Parameters(network, seed: 1),
            options: Plan.Options(batchSize: 2, mode: mode, frozen: example.frozen))
    }

    @Test("In training, a norm takes in what follows it", arguments: fused + apart)
    func training(_ example: Case) throws {
        #expect(try plan(example, .training).summary.map(\.name) == example.operations)
    }

    @Test("In prediction every node stands for itself", arguments: fused)
    func prediction(_ example: Case) throws {
        #expect(try plan(example, .prediction).summary.map(\.name) == example.nodes.map(\.name))
    }

    @Test("The summary says what the first layer is, and the shape of the last one's result")
    func summary() throws {
        let summary = try plan(Self.fused[0], .training).summary[1]
        #expect(summary.kind == "batchNormalization")
        #expect(summary.output == Shape(height: 2, width: 3, channels: 3))
        #expect(summary.parameterCount == 6)
    }

    @Test("A norm's gradient takes the place of its input's values, where nobody reads them again")
    func gradientInPlace() throws {
        func isInPlace(_ nodes: [Network.Node], at step: Int) throws -> Bool {
            let input = try plan(Case("", nodes, gives: []), .training).steps[step].context.input
            return input.gradient == input.values
        }
        func norm(_ input: String) -> Network.Node { Self.node("n", BatchNormalization(), input) }
        #expect(try isInPlace([Self.convolution(), norm("c")], at: 1))
        #expect(try isInPlace([Self.convolution(), norm("c"), Self.node("r", ReLU(), "n")], at: 1))
        // The sigmoid reads its result again; the other has two readers; the last one is the network's input.
        #expect(try !isInPlace([Self.convolution(), Self.node("s", Sigmoid(), "c"), norm("s")], at: 2))
        #expect(try !isInPlace([Self.convolution(), norm("c"), Self.node("s", Add(), "n", "c")], at: 1))
        let network = try Network(
            name: "norm", input: Shape(channels: 3), nodes: [norm(Network.inputName)])
        let first = try Plan(
            network, parameters: Parameters(network, seed: 1),
            options: Plan.Options(batchSize: 2, mode: .training, inputGradient: true))
        let input = first.steps[0].context.input
        #expect(input.gradient != nil && input.gradient != input.values)
    }
}
