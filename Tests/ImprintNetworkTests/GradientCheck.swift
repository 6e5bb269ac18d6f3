import Foundation
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares the gradients that a network computes with differences of its loss, Σ r·y with fixed random r.
///
/// The forward pass starts in memory full of NaN, and before the backward pass everything that it does not read again
/// is filled with NaN too, so that a gradient that is added to instead of written, or never written, shows.
struct GradientCheck {
    let network: Network
    let batch: Int
    var frozen: Set<String> = []
    /// The largest number of places tried in one tensor.
    var samples = 48
    /// Whether norms shift most of a deep network's values away from the kinks of its activations: between thousands of
    /// kinks, no step is small enough for them and large enough for rounding.
    var avoidsKinks = false

    /// Relative to a tensor's typical gradient or the place's own, whichever is larger.
    var tolerance = 0.02
    /// How far rounding moves the loss, relative to its terms; more with every layer.
    var rounding = 0x1p-20

    /// Steps relative to a tensor's typical value; a smaller one is tried where a kink is near.
    private static let steps: [Double] = [3e-2, 1e-2, 3e-3, 1e-3]
    private static let largestSkippedShare = 0.25

    /// Checks the gradients of the input and of every parameter that is trained.
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
        var tried = 0
        var skipped = 0
        for tensor in tensors {
            let result = check(tensor, plan, factors, sourceLocation)
            tried += result.tried
            skipped += result.skipped
        }
        #expect(
            Double(skipped) <= Self.largestSkippedShare * Double(tried),
            "\(network.name): \(skipped) of \(tried) places lie near a kink", sourceLocation: sourceLocation)
    }

    private struct Tensor {
        let name: String
        let node: String
        let values: UnsafeMutableBufferPointer<Float>
        let gradient: [Float]
    }

    /// The slopes of the loss to the left and right of a place.
    private struct Slope {
        let left: Double
        let right: Double
        let central: Double
        /// How far rounding may have moved them.
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
    ) -> (tried: Int, skipped: Int) {
        if let place = tensor.gradient.firstIndex(where: { !$0.isFinite }) {
            report(tensor, place, expected: "a number", sourceLocation)
            return (0, 0)
        }
        var stream = RandomStream(seed: 3, "places of \(tensor.name)")
        let places = stream.permutation(of: tensor.values.count).prefix(samples)
        let typicalValue = max(rootMeanSquare(tensor.values.map(Double.init)), 0.1)
        let centre = loss(plan, factors)
        func slope(at place: Int, step: Double) -> Slope {
            let value = tensor.values[place]
            defer { tensor.values[place] = value }
            let (below, above) = (value - Float(step * typicalValue), value + Float(step * typicalValue))
            tensor.values[place] = below
            let left = loss(plan, factors)
            tensor.values[place] = above
            let right = loss(plan, factors)
            return Slope(
                left: (centre.value - left.value) / Double(value - below),
                right: (right.value - centre.value) / Double(above - value),
                central: (right.value - left.value) / Double(above - below),
                noise: centre.rounding / (step * typicalValue))
        }
        let first = places.map { slope(at: $0, step: Self.steps[0]) }
        let typicalSlope = rootMeanSquare(first.map { $0.central })
        func bound(_ slope: Slope) -> Double {
            tolerance * max(abs(slope.central), typicalSlope) + slope.noise
        }
        /// The slope where the loss is smooth: left and right of a step agree, and so does the next smaller step, which
        /// is the one that counts (curvature and a kink may cancel out at one step, but not at two).
        func smoothSlope(at place: Int, _ first: Slope) -> Slope? {
            var larger = first
            for step in Self.steps.dropFirst() {
                let smaller = slope(at: place, step: step)
                let agrees = abs(larger.central - smaller.central) <= bound(larger) / 4 + smaller.noise
                if agrees && abs(larger.right - larger.left) <= bound(larger) / 2 { return smaller }
                larger = smaller
            }
            return nil
        }
        var skipped = 0
        for (place, first) in zip(places, first) {
            guard let slope = smoothSlope(at: place, first) else {
                skipped += 1
                continue
            }
            // Written so that NaN fails.
            if !(abs(Double(tensor.gradient[place]) - slope.central) <= bound(slope)) {
                report(tensor, place, expected: "\(slope.central) ± \(bound(slope))", sourceLocation)
                break
            }
        }
        return (places.count, skipped)
    }

    private func report(_ tensor: Tensor, _ place: Int, expected: String, _ sourceLocation: SourceLocation) {
        guard let node = network.nodes.firstIndex(where: { $0.name == tensor.node }) else { return }
        let shapes = network.inputShapes(of: node).map(\.description).joined(separator: ", ")
        Issue.record(
            """
            \(network.name), batch \(batch), frozen \(frozen.sorted()): gradient of \(tensor.name)[\(place)] is \
            \(tensor.gradient[place]), expected \(expected), at node "\(tensor.node)", \(network.nodes[node].layer), \
            from \(shapes) to \(network.shapes[node])
            """, sourceLocation: sourceLocation)
    }
}

/// Uniform numbers in −1…1 from the stream of this name.
func randomValues(_ count: Int, _ name: String) -> [Float] {
    var stream = RandomStream(seed: 7, name)
    return (0..<count).map { _ in stream.uniform(in: -1...1) }
}

/// Such numbers over and over, for many, with a period that no axis has.
func repeatedValues(_ count: Int, _ name: String) -> [Float] {
    let values = randomValues(10_007, name)
    var result: [Float] = []
    result.reserveCapacity(count)
    while result.count < count { result += values.prefix(count - result.count) }
    return result
}

/// Expects the same bits, which tell NaN from NaN and 0 from −0.
///
/// `#expect` describes all that differs between two arrays, which takes forever if they are long.
func expectSameBits(
    _ actual: some Sequence<Float>, _ expected: some Sequence<Float>, _ what: String,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let (actual, expected) = (Array(actual), Array(expected))
    let isSame = actual.withUnsafeBytes { Data($0) } == expected.withUnsafeBytes { Data($0) }
    if isSame { return }
    let place = zip(actual, expected).enumerated().first { $1.0.bitPattern != $1.1.bitPattern }?.offset
    Issue.record(
        "\(what): \(actual.count) and \(expected.count) numbers differ from place \(place ?? expected.count) on",
        sourceLocation: sourceLocation)
}

/// Initial parameters with nothing at a special value: no bias is 0, no scale or variance 1.
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
    /// Makes the next pass draw the masks of the first.
    func resetRandomness() { steps[0].context.randomness.step = 0 }

    /// Fills the arena with NaN, but for the bytes in `kept`.
    func poison(keeping kept: [UnsafeRawBufferPointer]) {
        let copies = kept.map { Array($0) }
        // Bits that are all set are NaN.
        memset(arena.base, 0xff, arena.byteCount)
        for (bytes, copy) in zip(kept, copies) {
            UnsafeMutableRawBufferPointer(mutating: bytes).copyBytes(from: copy)
        }
    }

    /// What the forward pass leaves in the arena for the backward pass and the caller.
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
