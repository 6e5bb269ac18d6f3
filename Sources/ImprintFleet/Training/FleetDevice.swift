internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel

/// Answers the messages of the server with the photos of the device.
///
/// The arrays of a message are a change to the head of the model, relative to the model file. A reply contains the same arrays after
/// training on the photos of the device. Averaging the replies by their numbers of photos is federated averaging (FedAvg), as in
/// `ModelFile.merging`.
struct FleetDevice: Sendable {
    static let weightName = "head.weight"
    static let biasName = "head.bias"
    /// The setting that names the digest of the model file.
    static let baseSetting = "imprint.base"
    /// The setting with the number of the round, from Flower's strategies.
    static let roundSetting = "server-round"
    /// The metric that weights the average in Flower's strategies.
    static let countMetric = "num-examples"

    let model: ModelFile
    let identity: String
    let channels: Int
    let labels: [String]
    let training: LocalTraining
    let validation: LocalTraining?
    let privacy: UpdatePrivacy

    init(
        _ model: ModelFile, _ training: LocalTraining, validation: LocalTraining?, privacy: UpdatePrivacy
    ) throws {
        guard let shape = model.headShape else { throw ImprintError.noHead(network: model.network.name) }
        self.model = model
        identity = try model.identity
        (channels, labels) = shape
        self.training = training
        self.validation = validation
        self.privacy = privacy
    }

    /// The number of values in the arrays of a message.
    var valueCount: Int { (channels + 1) * labels.count }

    /// The answer to a message.
    struct Answer {
        let content: RecordDictionary
        let event: FleetEvent
        /// Whether the answer is computed from photos, so that it counts for ε.
        var usesPhotos = false
    }

    /// - Parameters:
    ///   - type: The type of the message.
    ///   - content: The content of the message.
    ///   - squaredLoss: The squared privacy loss of all answers so far.
    func answer(_ type: String, _ content: RecordDictionary, squaredLoss: Double?) throws -> Answer {
        switch type {
        case "train": try train(content, squaredLoss: squaredLoss)
        case "evaluate": try evaluate(content)
        case "query": query()
        default: throw FleetError.unsupported(found: shown(type), expected: "train, evaluate or query")
        }
    }

    private func train(_ content: RecordDictionary, squaredLoss: Double?) throws -> Answer {
        let received = try change(in: content)
        let start = try model.personalization(received)
        // The start is rounded to float16, so subtract the rounded values.
        let rounded = model.headChange(start)
        let trained = try trainedChange(from: start) ?? rounded
        let release = privacy.release(
            HeadChange(
                weights: zip(trained.weights, rounded.weights).map { $0 - $1 },
                biases: zip(trained.biases, rounded.biases).map { $0 - $1 }))
        let sum = HeadChange(
            weights: zip(received.weights, release.change.weights).map { $0 + $1 },
            biases: zip(received.biases, release.change.biases).map { $0 + $1 })
        // Some of Flower's strategies need the names and the order of the server's arrays.
        var reply = RecordDictionary()
        reply.arrays = content.arrays.map { record in
            .init(
                name: record.name,
                value: ArrayRecord(
                    record.value.items.map { item in
                        .init(
                            name: item.name,
                            value: FleetArray(
                                shape: item.value.shape, values: item.name == Self.weightName ? sum.weights : sum.biases
                            ))
                    }))
        }
        reply.metrics = [metrics([(Self.countMetric, .integer(training.photoCount))])]
        return Answer(
            content: reply,
            event: .trained(
                FleetEvent.Training(
                    round: round(content), photoCount: training.photoCount, norm: release.norm,
                    isClipped: release.isClipped,
                    epsilon: privacy.epsilon(squaredLoss: privacy.addingAnswer(to: squaredLoss)))), usesPhotos: true)
    }

    /// Trains the head; with noise, returns nil if training diverges, because an error would depend on the photos.
    private func trainedChange(from start: Personalization) throws -> HeadChange? {
        do {
            return model.headChange(try training.train(from: start))
        } catch ImprintError.personalizationDiverged where privacy.noise != nil {
            return nil
        }
    }

    private func evaluate(_ content: RecordDictionary) throws -> Answer {
        guard privacy.noise == nil else {
            throw FleetError.unsupported(
                found: "an evaluation", expected: "only training, because this device adds noise to everything it sends"
            )
        }
        guard let validation else {
            throw FleetError.unsupported(
                found: "an evaluation", expected: "only training, because this device has no validation photos")
        }
        let (accuracy, loss) = try validation.evaluate(model.personalization(change(in: content)))
        var reply = RecordDictionary()
        reply.metrics = [
            metrics([
                (Self.countMetric, .integer(validation.photoCount)), ("accuracy", .double(accuracy)),
                ("loss", .double(loss)),
            ])
        ]
        return Answer(
            content: reply,
            event: .evaluated(round: round(content), photoCount: validation.photoCount, accuracy: accuracy, loss: loss),
            usesPhotos: true)
    }

    private func query() -> Answer {
        var reply = RecordDictionary()
        reply.metrics = [metrics([(Self.countMetric, .integer(training.photoCount))])]
        reply.configurations = [
            .init(name: "config", value: ValueRecord([(Self.baseSetting, .string(identity))]))
        ]
        return Answer(content: reply, event: .answeredQuery)
    }

    private func metrics(_ items: [(String, RecordValue)]) -> RecordDictionary.Named<ValueRecord> {
        .init(name: "metrics", value: ValueRecord(items))
    }

    private func round(_ content: RecordDictionary) -> Int? {
        if case .integer(let round)? = content.setting(Self.roundSetting) { round } else { nil }
    }

    /// Returns the change in a message, after checking that it is for this model.
    private func change(in content: RecordDictionary) throws -> HeadChange {
        let base = content.setting(Self.baseSetting)
        guard base == .string(identity) else {
            let found = if case .string(let text)? = base { shown(text) } else { "without a digest" }
            throw FleetError.wrongModel(found: found, expected: identity)
        }
        guard content.arrays.count == 1, let record = content.arrays.first?.value else {
            throw FleetError.malformed(
                reason: "the message has \(content.arrays.count) records of arrays, expected one")
        }
        func values(_ name: String, _ shape: [Int]) throws -> [Float] {
            guard let array = record.items.first(where: { $0.name == name })?.value else {
                throw FleetError.malformed(reason: "the array \(name) is missing")
            }
            guard array.shape == shape else {
                throw FleetError.malformed(reason: "the array \(name) has the shape \(array.shape), expected \(shape)")
            }
            // The head has float16 changes; a larger value would become infinite.
            guard array.values.allSatisfy({ abs($0) <= 65504 }) else {
                throw FleetError.malformed(reason: "the array \(name) has a value that is not finite or beyond float16")
            }
            return array.values
        }
        guard record.items.count == 2 else {
            throw FleetError.malformed(
                reason: "the message has \(record.items.count) arrays, expected \(Self.weightName) and \(Self.biasName)"
            )
        }
        return HeadChange(
            weights: try values(Self.weightName, [channels, labels.count]),
            biases: try values(Self.biasName, [labels.count]))
    }
}
