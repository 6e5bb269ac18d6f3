import Foundation
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares the gradients of a network with finite differences of its loss, Σ r·y with fixed random r.
///
/// Before the forward pass the arena is filled with NaN. Before the backward pass all memory that it does not read is
/// filled with NaN again. This detects gradients that are not written, or accumulated instead of written.
struct GradientCheck {
    let network: Network
    let batch: Int
    var frozen: Set<String> = []
    /// The maximum number of elements checked in one tensor.
    var samples = 48
    /// Whether batch norms shift most values of a deep network away from the kinks of its activations.
    ///
    /// Near thousands of kinks, a step that avoids them is too small compared with rounding errors.
    var avoidsKinks = false

    /// The tolerance relative to the root mean square gradient of the tensor or to the gradient of the element, whichever is larger.
    var tolerance = 0.02
    /// The rounding error of the loss relative to its terms, which grows with every layer.
    var rounding = 0x1p-20

    /// Step sizes relative to the root mean square of a tensor; near a kink, a smaller step is tried.
    private static let steps: [Double] = [3e-2, 1e-2, 3e-3, 1e-3]
    private static let largestSkippedShare = 0.25

    /// Checks the gradients of the input and of every trainable parameter.
    func run(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let parameters = try randomParameters(network, seed: 11)
        for entry in parameters.layout.entries where avoidsKinks && entry.parameter.name == "shift" {
            parameters[entry.name] = parameters[entry.name]?.map { $0 + 3 }
        }
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: batch, mode: .training, frozen: frozen, inputGradient: true, seed: 5))
        plan.poison(keeping: [])
        _ = plan.input.update(from: randomValues(plan.input.count, "input"))
        let factors = randomValues(plan.output.count, "loss")

        _ = loss(plan, factors)
        plan.poison(keeping: plan.readByBackward)
        plan.parameterGradients.update(repeating: .nan)
        _ = plan.outputGradient.update(from: factors)
        plan.backward(count: batch)

        var tensors = [
            Tensor(
                name: Network.inputName, node: network.nodes[0].name, values: plan.input,
                gradient: Array(try #require(plan.inputGradient)))
        ]
        for entry in parameters.layout.entries
        where entry.parameter.role != .statistic && !frozen.contains(entry.node) {
            tensors.append(
                Tensor(
                    name: entry.name, node: entry.node,
                    values: UnsafeMutableBufferPointer(rebasing: parameters.buffer[entry.range]),
                    gradient: Array(plan.parameterGradients[entry.range])))
        }
        var checked = 0
        var skipped = 0
        for tensor in tensors {
            let result = check(tensor, plan, factors, sourceLocation)
            checked += result.checked
            skipped += result.skipped
        }
        #expect(
            Double(skipped) <= Self.largestSkippedShare * Double(checked),
            "\(network.name): \(skipped) of \(checked) elements are near a kink", sourceLocation: sourceLocation)
    }

    private struct Tensor {
        let name: String
        let node: String
        let values: UnsafeMutableBufferPointer<Float>
        let gradient: [Float]
    }

    /// One-sided and central finite differences of the loss at one element.
    private struct Slope {
        let left: Double
        let right: Double
        let central: Double
        /// The bound of their rounding errors.
        let noise: Double
    }

    private func loss(_ plan: ExecutionPlan, _ factors: [Float]) -> (value: Double, rounding: Double) {
        plan.resetRandomness()
        plan.forward(count: batch)
        var sum = 0.0
        var squares = 0.0
        for (y, factor) in zip(plan.output, factors) {
            let term = Double(y) * Double(factor)
            sum += term
            squares += term * term
        }
        return (sum, squares.squareRoot() * rounding)
    }

    private func check(
        _ tensor: Tensor, _ plan: ExecutionPlan, _ factors: [Float], _ sourceLocation: SourceLocation
    ) -> (checked: Int, skipped: Int) {
        if let index = tensor.gradient.firstIndex(where: { !$0.isFinite }) {
            report(tensor, index, expected: "a finite value", sourceLocation)
            return (0, 0)
        }
        var stream = RandomStream(seed: 3, "places of \(tensor.name)")
        let indices = stream.permutation(of: tensor.values.count).prefix(samples)
        let typicalValue = max(rootMeanSquare(tensor.values.map(Double.init)), 0.1)
        let centre = loss(plan, factors)
        func slope(at index: Int, step: Double) -> Slope {
            let value = tensor.values[index]
            defer { tensor.values[index] = value }
            let (below, above) = (value - Float(step * typicalValue), value + Float(step * typicalValue))
            tensor.values[index] = below
            let left = loss(plan, factors)
            tensor.values[index] = above
            let right = loss(plan, factors)
            return Slope(
                left: (centre.value - left.value) / Double(value - below),
                right: (right.value - centre.value) / Double(above - value),
                central: (right.value - left.value) / Double(above - below),
                noise: centre.rounding / (step * typicalValue))
        }
        let largestStepSlopes = indices.map { slope(at: $0, step: Self.steps[0]) }
        let typicalSlope = rootMeanSquare(largestStepSlopes.map { $0.central })
        func bound(_ slope: Slope) -> Double {
            tolerance * max(abs(slope.central), typicalSlope) + slope.noise
        }
        /// Returns the slope if the loss is smooth: the one-sided differences of a step agree, and so does the next smaller step.
        ///
        /// The smaller step gives the result. Curvature and a kink can cancel out at one step, but not at two.
        func smoothSlope(at index: Int, _ first: Slope) -> Slope? {
            var larger = first
            for step in Self.steps.dropFirst() {
                let smaller = slope(at: index, step: step)
                let agrees = abs(larger.central - smaller.central) <= bound(larger) / 4 + smaller.noise
                if agrees && abs(larger.right - larger.left) <= bound(larger) / 2 { return smaller }
                larger = smaller
            }
            return nil
        }
        var skipped = 0
        for (index, first) in zip(indices, largestStepSlopes) {
            guard let slope = smoothSlope(at: index, first) else {
                skipped += 1
                continue
            }
            // NaN fails this comparison.
            if !(abs(Double(tensor.gradient[index]) - slope.central) <= bound(slope)) {
                report(tensor, index, expected: "\(slope.central) ± \(bound(slope))", sourceLocation)
                break
            }
        }
        return (indices.count, skipped)
    }

    private func report(_ tensor: Tensor, _ index: Int, expected: String, _ sourceLocation: SourceLocation) {
        guard let node = network.nodes.firstIndex(where: { $0.name == tensor.node }) else { return }
        let shapes = network.inputShapes(of: node).map(\.description).joined(separator: ", ")
        Issue.record(
            """
            \(network.name), batch \(batch), frozen \(frozen.sorted()): gradient of \(tensor.name)[\(index)] is \
            \(tensor.gradient[index]), expected \(expected), at node "\(tensor.node)", \(network.nodes[node].layer), \
            from \(shapes) to \(network.shapes[node])
            """, sourceLocation: sourceLocation)
    }
}

/// Returns uniform values in −1…1 from the random stream with this name.
func randomValues(_ count: Int, _ name: String) -> [Float] {
    var stream = RandomStream(seed: 7, name)
    return (0..<count).map { _ in stream.uniform(in: -1...1) }
}

/// Returns many random values by repeating 10,007 values, a prime that is not the length of an axis.
func repeatedValues(_ count: Int, _ name: String) -> [Float] {
    let values = randomValues(10_007, name)
    var result: [Float] = []
    result.reserveCapacity(count)
    while result.count < count { result += values.prefix(count - result.count) }
    return result
}

/// Expects bitwise equality, which distinguishes NaN payloads, and 0 from −0.
///
/// `#expect` describes all differences between two arrays, which is very slow for long arrays.
func expectBitwiseEqual(
    _ actual: some Sequence<Float>, _ expected: some Sequence<Float>, _ name: String,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let (actual, expected) = (Array(actual), Array(expected))
    let isSame = actual.withUnsafeBytes { Data($0) } == expected.withUnsafeBytes { Data($0) }
    if isSame { return }
    let index = zip(actual, expected).enumerated().first { $1.0.bitPattern != $1.1.bitPattern }?.offset
    Issue.record(
        "\(name): \(actual.count) and \(expected.count) values differ, first at index \(index ?? expected.count)",
        sourceLocation: sourceLocation)
}

/// Returns initial parameters without special values: biases are not 0, scales and variances are not 1.
func randomParameters(_ network: Network, seed: UInt64) throws -> Parameters {
    let parameters = try Parameters(network, seed: seed)
    for entry in parameters.layout.entries where entry.parameter.role != .weight {
        parameters[entry.name] = zip(parameters[entry.name] ?? [], randomValues(entry.parameter.count, entry.name))
            .map { $0 + $1 / 2 }
    }
    return parameters
}

private func rootMeanSquare(_ values: [Double]) -> Double {
    (values.reduce(0) { $0 + $1 * $1 } / Double(max(values.count, 1))).squareRoot()
}

extension Parameters {
    /// The whole buffer.
    var buffer: UnsafeMutableBufferPointer<Float> { UnsafeMutableBufferPointer(start: floats, count: layout.count) }
}

extension ExecutionPlan {
    /// Resets the random streams, so that the next pass draws the same masks as the first.
    func resetRandomness() { steps[0].context.randomness.step = 0 }

    /// Fills the arena with NaN, except for the bytes in `kept`.
    func poison(keeping kept: [UnsafeRawBufferPointer]) {
        let copies = kept.map { Array($0) }
        // A float with all bits set is NaN.
        memset(arena.base, 0xff, arena.byteCount)
        for (bytes, copy) in zip(kept, copies) {
            UnsafeMutableRawBufferPointer(mutating: bytes).copyBytes(from: copy)
        }
    }

    /// The memory that the forward pass leaves in the arena for the backward pass and the caller.
    var readByBackward: [UnsafeRawBufferPointer] {
        var kept = [UnsafeRawBufferPointer(input), UnsafeRawBufferPointer(output)]
        func keep(_ activation: Activation) {
            kept.append(
                UnsafeRawBufferPointer(
                    UnsafeBufferPointer(start: activation.values, count: options.batchSize * activation.shape.count)))
        }
        for step in steps where step.runsBackward {
            if step.kernel.backwardReads.contains(.inputs) { step.context.inputs.forEach(keep) }
            if step.kernel.backwardReads.contains(.output) { keep(step.context.output) }
            let memory = step.kernel.memory(
                MemoryRequest(
                    inputs: step.context.inputs.map(\.shape), output: step.context.output.shape,
                    batch: options.batchSize, training: true, delaysPacking: false, workers: options.workers,
                    algorithm: step.context.algorithm))
            kept.append(UnsafeRawBufferPointer(start: step.context.saved, count: memory.saved))
        }
        return kept
    }
}
