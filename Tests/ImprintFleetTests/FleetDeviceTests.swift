import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintFleet
@testable import ImprintModel

@Suite struct FleetDeviceTests {
    @Test("The average of the devices' answers is the model that merging their personalizations gives") func merging()
        throws
    {
        try withTemporaryFolder { folder in
            let devices = try [6, 4].map { count in
                let folder = folder.appending(path: "\(count)")
                return try FleetFixture(folder, photoCount: count)
            }
            let base = devices[0].model
            var (sum, total) = (HeadChange(weights: [], biases: []), Float(0))
            var personalizations: [Personalization] = []
            for fixture in devices {
                let answer = try fixture.device().answer("train", fixture.content(), squaredLoss: 0)
                let change = try change(answer.content)
                let count = Float(fixture.photos.items.count)
                #expect(answer.content.metrics.first?.value == ValueRecord([("num-examples", .integer(Int(count)))]))
                #expect(answer.usesPhotos)
                func add(_ left: [Float], _ right: [Float]) -> [Float] {
                    right.enumerated().map { (left.isEmpty ? 0 : left[$0]) + count * $1 }
                }
                sum = HeadChange(weights: add(sum.weights, change.weights), biases: add(sum.biases, change.biases))
                total += count
                let session = try PersonalizationSession(fixture.classifier)
                _ = try session.teach(fixture.photos)
                personalizations.append(try #require(session.personalization))
            }
            let merged = try base.merging(personalizations).model
            let averaged = try base.merging([
                base.personalization(
                    HeadChange(weights: sum.weights.map { $0 / total }, biases: sum.biases.map { $0 / total }))
            ]).model
            let head = base.network.nodes[try #require(base.network.headIndex)].name
            for name in ["\(head).weight", "\(head).bias"] {
                let (expected, found) = (merged.parameters[name] ?? [], averaged.parameters[name] ?? [])
                #expect(!expected.isEmpty && expected != base.parameters[name])
                // The average is rounded to float16.
                #expect(zip(expected, found).allSatisfy { abs($0 - $1) <= 1e-3 * max(1, abs($0)) }, "\(name)")
            }
        }
    }

    @Test("Training continues from the change that the server sends") func continuation() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let device = try fixture.device()
            let first = try change(device.answer("train", fixture.content(), squaredLoss: 0).content)
            let answer = try device.answer(
                "train", fixture.content(weights: first.weights, biases: first.biases, round: 4), squaredLoss: 0)
            let second = try change(answer.content)
            let repeated = try change(
                device.answer("train", fixture.content(weights: first.weights, biases: first.biases), squaredLoss: 0)
                    .content)
            #expect(second == repeated && second != first)
            guard case .trained(let training) = answer.event else {
                Issue.record("\(answer.event)")
                return
            }
            let difference = zip(second.weights + second.biases, first.weights + first.biases).map { $0 - $1 }
            #expect(training.round == 4 && training.photoCount == 6 && !training.isClipped && training.epsilon == nil)
            #expect(abs(training.norm - norm(difference)) < 1e-3 * training.norm)
        }
    }

    @Test("A change is clipped to the norm, and keeps its direction") func clipping() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let free = try change(fixture.device().answer("train", fixture.content(), squaredLoss: 0).content)
            let length = norm(free.weights + free.biases)
            let answer = try fixture.device(clip: length / 4).answer("train", fixture.content(), squaredLoss: 0)
            let clipped = try change(answer.content)
            #expect(abs(norm(clipped.weights + clipped.biases) - length / 4) < 1e-4 * length)
            #expect(zip(free.weights, clipped.weights).allSatisfy { abs($0 / 4 - $1) < 1e-4 * Float(length) })
            guard case .trained(let training) = answer.event else {
                Issue.record("\(answer.event)")
                return
            }
            #expect(training.isClipped && abs(training.norm - length) < 1e-6 * length)
            let wide = try fixture.device(clip: 2 * length).answer("train", fixture.content(), squaredLoss: 0)
            #expect(try change(wide.content) == free)
        }
    }

    @Test("Noise has the standard deviation z · C in every value, and ε grows with the rounds") func noise() throws {
        let privacy = UpdatePrivacy(clip: 0.5, noise: 2, delta: 1e-5)
        let zeros = HeadChange(weights: [Float](repeating: 0, count: 20_000), biases: [0, 0])
        let values = privacy.release(zeros).change.weights
        let deviation = norm(values) / Double(values.count).squareRoot()
        // Five standard errors of a standard deviation of 1.
        #expect(abs(deviation - 1) < 5 / (2 * 20_000.0).squareRoot())
        #expect(abs(values.reduce(0, +) / Float(values.count)) < 5 / Float(20_000).squareRoot())
        #expect(privacy.release(zeros).change != privacy.release(zeros).change)
        // The table of docs/explanation/merging.md: z = 1 has ε = 4.38; a message has z / 2 because two changes differ by at most 2 C.
        let once = try #require(privacy.addingAnswer(to: 0))
        #expect(abs(try #require(privacy.epsilon(squaredLoss: once)) - 4.3771780956812) < 1e-6)
        let four = try #require((1...4).reduce(Optional(0.0)) { loss, _ in privacy.addingAnswer(to: loss) })
        let expected = GaussianMechanism.epsilon(multiplier: 0.5, delta: 1e-5)
        #expect(abs(try #require(privacy.epsilon(squaredLoss: four)) - expected) < 1e-9)
        #expect(privacy.epsilon(squaredLoss: 0) == 0)
        // An answer with less noise counts with its own loss, and one without noise has no limit.
        let weak = UpdatePrivacy(clip: 1, noise: 0.5, delta: 1e-5).addingAnswer(to: once)
        #expect(abs(try #require(weak) - (once + 16)) < 1e-9)
        let none = UpdatePrivacy(clip: nil, noise: nil, delta: 1e-5).addingAnswer(to: once)
        #expect(none == nil && privacy.addingAnswer(to: none) == nil && privacy.epsilon(squaredLoss: none) == nil)
    }

    @Test("Instead of a change that is not finite, a device sends only noise", arguments: [Float.nan, .infinity])
    func notFinite(_ value: Float) {
        let privacy = UpdatePrivacy(clip: 1, noise: 2, delta: 1e-5)
        func release(_ change: HeadChange) -> UpdatePrivacy.Release {
            var stream = RandomStream(seed: 1, "noise")
            return privacy.release(change, &stream)
        }
        let zeros = HeadChange(weights: [0, 0, 0], biases: [0])
        for change in [
            HeadChange(weights: [1, value, 2], biases: [0]), HeadChange(weights: [1, 1, 2], biases: [-value]),
        ] {
            let released = release(change)
            #expect(released == release(zeros) && released.change != zeros && released.norm == 0)
        }
    }

    @Test("If training diverges, a device with noise sends only noise, and another device fails") func diverged()
        throws
    {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let content = try fixture.content()
            let open = try fixture.device(clip: 1, diverges: true)
            #expect(throws: ImprintError.personalizationDiverged) {
                _ = try open.answer("train", content, squaredLoss: 0)
            }
            let device = try fixture.device(clip: 1, noise: 1, diverges: true)
            let answer = try device.answer("train", content, squaredLoss: 0)
            let sent = try change(answer.content)
            #expect((sent.weights + sent.biases).allSatisfy { $0.isFinite && $0 != 0 } && answer.usesPhotos)
            guard case .trained(let training) = answer.event else {
                Issue.record("\(answer.event)")
                return
            }
            #expect(training.norm == 0 && !training.isClipped && training.epsilon != nil)
        }
    }

    @Test("An evaluation measures the server's model on the validation photos") func evaluation() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let trained = try change(fixture.device().answer("train", fixture.content(), squaredLoss: 0).content)
            let content = try fixture.content(weights: trained.weights, biases: trained.biases)
            let answer = try fixture.device(validates: true).answer("evaluate", content, squaredLoss: 0)
            let classifier = try fixture.classifier.personalized(
                with: fixture.model.personalization(trained))
            let correct = try fixture.photos.items.count { item in
                try classifier.classify(item.url)[0].label == fixture.photos.labels[item.label]
            }
            let metrics = try #require(answer.content.metrics.first).value.items
            #expect(metrics.map(\.name) == ["num-examples", "accuracy", "loss"])
            #expect(metrics[0].value == .integer(6) && metrics[1].value == .double(Double(correct) / 6))
            #expect(answer.content.arrays.isEmpty)
        }
    }

    @Test("A device without validation photos, or with noise, does not answer evaluations") func noEvaluation() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            for device in [try fixture.device(), try fixture.device(clip: 1, noise: 1, validates: true)] {
                let error = #expect(throws: FleetError.self) {
                    _ = try device.answer("evaluate", fixture.content(), squaredLoss: 0)
                }
                guard case .unsupported = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
    }

    @Test("A query is answered with the number of photos and the model") func query() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let answer = try fixture.device().answer("query", RecordDictionary(), squaredLoss: 0)
            #expect(answer.content.metrics.first?.value == ValueRecord([("num-examples", .integer(6))]))
            #expect(
                answer.content.configurations.first?.value
                    == ValueRecord([("imprint.base", .string(try fixture.model.identity))]))
            #expect(answer.content.arrays.isEmpty && answer.event == .answeredQuery)
        }
    }

    @Test("A message for another model, or with other arrays, is refused") func wrongMessages() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let device = try fixture.device()
            let other = String(repeating: "0", count: 64)
            #expect(
                throws: FleetError.wrongModel(found: "\"\(other)\"", expected: try fixture.model.identity)
            ) { _ = try device.answer("train", fixture.content(base: other), squaredLoss: 0) }
            var content = try fixture.content()
            content.configurations = []
            #expect(throws: FleetError.self) { _ = try device.answer("train", content, squaredLoss: 0) }
            for value: Float in [.nan, .infinity, 70_000] {
                content = try fixture.content(biases: [value, 0])
                #expect(throws: FleetError.self, "\(value)") { _ = try device.answer("train", content, squaredLoss: 0) }
            }
            content = try fixture.content()
            content.arrays[0] = .init(
                name: "arrays",
                value: ArrayRecord([
                    .init(name: "head.weight", value: FleetArray(shape: [2, 1], values: [0, 0])),
                    .init(name: "head.bias", value: FleetArray(shape: [2], values: [0, 0])),
                ]))
            #expect(throws: FleetError.self) { _ = try device.answer("train", content, squaredLoss: 0) }
            #expect(throws: FleetError.self) { _ = try device.answer("train.other", fixture.content(), squaredLoss: 0) }
        }
    }

    @Test("The features of readable photos count for the memory limit") func memoryLimit() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder, photoCount: 80)
            // Ten photos of the second label are damaged.
            let dark = folder.appending(path: "photos/dark")
            for name in try FileManager.default.contentsOfDirectory(atPath: dark.path).prefix(10) {
                let file = dark.appending(path: name)
                let content = try Data(contentsOf: file)
                try content.prefix(60).write(to: file)
            }
            let photos = try ImageFolder(at: folder.appending(path: "photos"), minimumLabels: 1)
            let size = 4 * fixture.channels * MemoryLayout<Float>.stride
            func train(limit: Int) throws -> LocalTraining {
                var configuration = PersonalizationConfiguration()
                configuration.memoryLimit = limit
                return try LocalTraining(fixture.classifier, photos, configuration: configuration)
            }
            let training = try train(limit: 70 * size)
            #expect(training.photoCount == 70 && training.skipped.count == 10)
            #expect(throws: ImprintError.featuresExceedMemoryLimit(byteCount: 70 * size, limit: 70 * size - 1)) {
                _ = try train(limit: 70 * size - 1)
            }
            // The first photos show that half of the photos, which must be readable, exceed the limit.
            #expect(throws: ImprintError.featuresExceedMemoryLimit(byteCount: 80 * size, limit: 40 * size - 1)) {
                _ = try train(limit: 40 * size - 1)
            }
        }
    }

    @Test("Photos of a label that the model does not have are an error") func unknownLabel() throws {
        try withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            try FileManager.default.moveItem(
                at: folder.appending(path: "photos/dark"), to: folder.appending(path: "photos/secret"))
            let photos = try ImageFolder(at: folder.appending(path: "photos"))
            #expect(throws: ImprintError.self) {
                _ = try LocalTraining(fixture.classifier, photos, configuration: PersonalizationConfiguration())
            }
        }
    }
}
