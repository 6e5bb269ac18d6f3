internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

extension ClassifierPredictor {
    func batchPredictor(maximumBatchSize: Int, workers: Workers) throws -> (any BatchPredictor)? {
        ClassifierBatchPredictor(
            self, plans: try parts.map { part in try part.makePlan(maximumBatchSize) }, workers: workers)
    }
}

/// A predictor that runs the network of a classifier once for a whole batch.
///
/// It decodes and scales the images of a batch in parallel, before the threads share the operations of the network.
private struct ClassifierBatchPredictor: BatchPredictor, @unchecked Sendable {
    // The caller uses the plans from one thread at a time.
    private let plans: [ExecutionPlan]
    private let predictor: ClassifierPredictor
    private let workers: Workers

    init(_ predictor: ClassifierPredictor, plans: [ExecutionPlan], workers: Workers) {
        (self.predictor, self.plans, self.workers) = (predictor, plans, workers)
    }

    /// An input of the network.
    private enum Prepared {
        case image(RasterImage)
        case values([Float])
    }

    func predict(_ inputs: [BatchInput]) -> [Result<Prediction, any Error>] {
        let prepared = workers.parallelMap(inputs.count) { index in Result { try prepare(inputs[index]) } }
        // Unreadable images take no part in the pass.
        var predictions = predictions(of: prepared.compactMap { try? $0.get() })[...]
        return prepared.map { result in result.flatMap { _ in predictions.removeFirst() } }
    }

    private func prepare(_ input: BatchInput) throws -> Prepared {
        switch input {
        case .image(let source):
            return .image(
                predictor.preprocessing.prepare(try source.stored(coveringShortSide: predictor.shortSideToDecode)))
        case .values(let bytes):
            let count = plans[0].network.input.count
            precondition(
                bytes.count == count * MemoryLayout<Float>.stride,
                "\(bytes.count) bytes are not \(count) values")
            return .values(
                [Float](unsafeUninitializedCapacity: count) { buffer, initializedCount in
                    bytes.copyBytes(to: UnsafeMutableRawBufferPointer(buffer))
                    initializedCount = count
                })
        }
    }

    private func predictions(of inputs: [Prepared]) -> [Result<Prediction, any Error>] {
        guard !inputs.isEmpty else { return [] }
        var confidences = forward(inputs)
        if predictor.averagesFlipped {
            confidences = zip(confidences, forward(inputs.map(mirrored))).map(predictor.average)
        }
        return confidences.map { confidences in
            Result {
                // Activations can overflow even though the parameters are finite.
                guard confidences.allSatisfy(\.isFinite) else {
                    throw ImprintError.nonFiniteOutput(network: predictor.network)
                }
                return Prediction(confidences: confidences, boxes: confidences.map { _ in nil }, novelty: nil)
            }
        }
    }

    /// Returns the confidences of each input.
    private func forward(_ inputs: [Prepared]) -> [[Float]] {
        let size = plans[0].network.input.count
        for (index, input) in inputs.enumerated() {
            let slot = UnsafeMutableBufferPointer(rebasing: plans[0].input[index * size..<(index + 1) * size])
            switch input {
            case .image(let image): predictor.preprocessing.normalize(image, into: slot)
            case .values(let values): _ = slot.update(fromContentsOf: values)
            }
        }
        plans[0].forward(count: inputs.count)
        for (plan, next) in zip(plans, plans.dropFirst()) {
            _ = next.input.update(fromContentsOf: plan.output)
            next.forward(count: inputs.count)
        }
        let last = plans[plans.count - 1]
        let (output, labels) = (last.output, last.network.output.count)
        return inputs.indices.map { Array(output[$0 * labels..<($0 + 1) * labels]) }
    }

    /// Returns an input mirrored left to right.
    private func mirrored(_ input: Prepared) -> Prepared {
        switch input {
        case .image(let image): return .image(image.mirrored)
        case .values(let values):
            let shape = plans[0].network.input
            return .values(
                (0..<shape.height).flatMap { row in
                    (0..<shape.width).reversed().flatMap { column in
                        let offset = (row * shape.width + column) * shape.channels
                        return values[offset..<offset + shape.channels]
                    }
                })
        }
    }
}
