import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import Synchronization
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Tests of personalization with one or several photos at a time.
@Suite struct PersonalizationSessionTests {
    private let photos = stripes(2, count: 4) + stripes(5, count: 4)

    @Test("Training adds a label from a few photos and keeps the accuracy of the base's labels")
    func newLabel() throws {
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base)
        for photo in stripes(2, count: 6) { try session.teach(photo, as: "stripes") }
        let classifier = session.classifier
        #expect(classifier.labels == ["left", "right", "stripes"] && base.labels == ["left", "right"])
        for photo in stripes(2, count: 10, seed: 9) { #expect(try classifier.classify(photo)[0].label == "stripes") }
        try withImages(perLabel: 10, seed: 77) { folder in
            let before = try base.evaluate(on: ImageFolder(at: folder)).accuracy
            let after = try classifier.evaluate(on: ImageFolder(at: folder)).accuracy
            #expect(after >= before - 0.051, "\(before) \(after)")
        }
        #expect(try abs(classifier.classify(photos[0]).map(\.confidence).reduce(0, +) - 1) < 1e-5)
    }

    @Test("Adding several photos reports progress, and is undone in one step", arguments: [0, 1])
    func several(blocks: Int) throws {
        var configuration = PersonalizationConfiguration()
        configuration.blocks = blocks
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base, configuration: configuration)
        let examples = stripes(2, count: 5).map { (photo: ImageSource.image($0), label: "stripes") }
        var extracted: [Int] = []
        var steps: [PersonalizationProgress.Step] = []
        try session.teach(examples) { progress in
            switch progress {
            case .extractedFeatures(let done, let total):
                extracted.append(done)
                #expect(total == 5)
            case .step(let step): steps.append(step)
            }
        }
        #expect(extracted.last == 5 && extracted == extracted.sorted())
        #expect(steps.count > 5 && steps.map(\.step) == steps.map(\.step).sorted())
        #expect(steps.allSatisfy { $0.loss.isFinite && (0...1).contains($0.accuracy) && $0.step <= $0.steps })
        let (first, last) = (try #require(steps.first), try #require(steps.last))
        #expect(last.step == last.steps && last.loss < first.loss && last.accuracy == 1)
        #expect(try session.classifier.classify(stripes(2, count: 1, seed: 5)[0])[0].label == "stripes")
        #expect(try session.undo())
        #expect(try session.classifier.classify(photos[0]) == base.classify(photos[0]) && session.exampleCount == 0)
        #expect(throws: ImageError.self) {
            try session.teach([examples[0], (photo: .data(Data("no image".utf8)), label: "stripes")])
        }
        let control = PersonalizationControl()
        #expect(throws: CancellationError.self) {
            try session.teach(examples, control: control) { if case .step = $0 { control.cancel() } }
        }
        #expect(session.exampleCount == 0 && session.classifier.labels == ["left", "right"])
        configuration.memoryLimit = 1000
        let small = try PersonalizationSession(base, configuration: configuration)
        var extractedCount = 0
        #expect(throws: ImprintError.self) {
            try small.teach(Array(repeating: examples[0], count: 1000)) {
                if case .extractedFeatures(let done, _) = $0 { extractedCount = done }
            }
        }
        // The call throws before it has extracted the features of all photos.
        #expect(extractedCount < 500)
    }

    @Test("undo() restores the previous confidences and the confidences of the base model bitwise")
    func undo() throws {
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base)
        var versions: [[Classification]] = [try base.classify(photos[0])]
        for (index, photo) in photos.enumerated() {
            try session.teach(photo, as: index < 4 ? "stripes" : "left")
            versions.append(try session.classifier.classify(photos[0]))
        }
        #expect(Set(versions).count == versions.count)
        #expect(session.exampleCount == 8)
        for version in versions.reversed().dropFirst() {
            #expect(try session.undo())
            #expect(try session.classifier.classify(photos[0]) == version)
        }
        #expect(try !session.undo() && session.personalization == nil && session.exampleCount == 0)
        #expect(try session.classifier.personalized(with: nil).classify(photos[0]) == versions[0])
        #expect(throws: ImprintError.nothingToSave) { try session.save(to: URL(filePath: "/nowhere/x")) }
    }

    @Test(
        "A saved personalization gives the same confidences as the session, with and without adapted blocks",
        arguments: [0, 1, 2])
    func saved(blocks: Int) throws {
        var configuration = PersonalizationConfiguration()
        configuration.blocks = blocks
        configuration.rank = 3
        let base = try leftOrRightClassifier()
        let before = try base.classify(photos[5])
        let session = try PersonalizationSession(base, configuration: configuration)
        try session.teach(photos[0], as: "stripes")
        try session.teach(photos[4], as: "right")
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "mine.imprint")
            let byteCount = try session.save(to: file)
            #expect(try Data(contentsOf: file).count == byteCount && byteCount < 16_384)
            let read = try Personalization(contentsOf: file)
            #expect(read == session.personalization && read.adapters.count == blocks)
            #expect(read.record == Personalization.Record(examples: ["stripes": 1, "right": 1]))
            let loaded = try base.personalized(with: read)
            #expect(try photos.map { try loaded.classify($0) } == photos.map { try session.classifier.classify($0) })
            // The personalized copy of the whole model differs at most in rounding.
            let whole = try ImageClassifier(leftOrRight().personalized(with: read))
            for photo in photos {
                let (one, other) = (try whole.classify(photo)[0], try loaded.classify(photo)[0])
                #expect(one.label == other.label && abs(one.confidence - other.confidence) < 1e-4)
            }
        }
        #expect(try base.classify(photos[5]) == before)
    }

    @Test("The same photos in the same order give an identical personalization")
    func repeatable() throws {
        func personalization(_ photos: [RasterImage]) throws -> Personalization? {
            let session = try PersonalizationSession(leftOrRightClassifier())
            for photo in photos { try session.teach(photo, as: "stripes") }
            return session.personalization
        }
        #expect(try personalization(photos) == personalization(photos))
        #expect(try personalization(photos) != personalization(Array(photos.dropLast())))
    }

    @Test("A correction lowers the confidence in the wrong label")
    func correction() throws {
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base)
        let wrong = try base.classify(photos[0])[0]
        try session.correct(photos[0], isNot: wrong.label)
        #expect(try session.classifier.confidence(wrong.label, photos[0]) < wrong.confidence / 2)
        #expect(session.personalization?.record.corrections == [wrong.label: 1])
        #expect(throws: ImprintError.unknownLabel("up", known: ["left", "right"])) {
            try session.correct(photos[0], isNot: "up")
        }
        #expect(session.exampleCount == 1)
    }

    @Test("Cross-validation works if a correction of a new label precedes its first photo in a fold")
    func correctionFirst() throws {
        let session = try PersonalizationSession(leftOrRightClassifier())
        try session.teach(photos[0], as: "stripes")
        try session.correct(photos[4], isNot: "stripes")
        try session.correct(photos[5], isNot: "stripes")
        try session.teach(photos[1], as: "stripes")
        for (index, photo) in stripes(9, count: 6).enumerated() {
            try session.teach(photo, as: index % 2 == 0 ? "left" : "right")
        }
        let accuracy = try #require(try session.crossValidated(folds: 5))
        #expect((0...1).contains(accuracy.before) && (0...1).contains(accuracy.after))
    }

    @Test("forget() removes a label, and undo() restores it")
    func forget() throws {
        let session = try PersonalizationSession(leftOrRightClassifier())
        try session.teach(photos[0], as: "stripes")
        try session.teach(photos[4], as: "wide")
        let both = try session.classifier.classify(photos[1])
        try session.forget("stripes")
        #expect(session.classifier.labels == ["left", "right", "wide"] && session.exampleCount == 1)
        #expect(throws: ImprintError.unknownLabel("stripes", known: ["left", "right", "wide"])) {
            try session.forget("stripes")
        }
        try session.undo()
        #expect(try session.classifier.classify(photos[1]) == both)
        try session.forget("stripes")
        try session.forget("wide")
        #expect(session.personalization == nil)
    }

    @Test("A session continues from an existing personalization, and can forget its labels")
    func continues() throws {
        let first = try PersonalizationSession(leftOrRightClassifier())
        for photo in stripes(2, count: 4) { try first.teach(photo, as: "stripes") }
        let second = try PersonalizationSession(first.classifier)
        #expect(second.base.labels == ["left", "right"] && second.exampleCount == 0)
        for photo in stripes(5, count: 4) { try second.teach(photo, as: "wide") }
        #expect(second.classifier.labels == ["left", "right", "stripes", "wide"])
        #expect(second.personalization?.record.examples == ["stripes": 4, "wide": 4])
        for (width, label) in [(2, "stripes"), (5, "wide")] {
            let correct = try stripes(width, count: 10, seed: 4).count {
                try second.classifier.classify($0)[0].label == label
            }
            #expect(correct >= 8, "\(label)")
        }
        try second.forget("stripes")
        #expect(second.classifier.labels == ["left", "right", "wide"])
        for _ in 0..<5 { try second.undo() }
        #expect(second.personalization == first.personalization)
    }

    @Test("Rehearsal features reduce forgetting")
    func rehearsal() throws {
        /// Returns the total change of confidences on photos like those that the base was trained on.
        func change(_ weight: Float) throws -> Float {
            var configuration = PersonalizationConfiguration()
            configuration.rehearsalWeight = weight
            let base = try leftOrRightClassifier()
            let session = try PersonalizationSession(base, configuration: configuration)
            for photo in photos { try session.teach(photo, as: "left") }
            return try withImages(perLabel: 8, seed: 31) { folder in
                try ImageFolder(at: folder).items.reduce(0) { sum, item in
                    let (before, after) = (
                        try base.confidences(of: item.url), try session.classifier.confidences(of: item.url)
                    )
                    return sum + abs(before[0] - after[0])
                }
            }
        }
        #expect(try leftOrRight().rehearsal?.labels.count == 32)
        let (with, without) = (try change(2), try change(0))
        #expect(with < without / 3, "\(with) and \(without)")
    }

    @Test("Concurrent classifications use exactly one version of the classifier each")
    func hotSwap() throws {
        let session = try PersonalizationSession(leftOrRightClassifier())
        let photo = photos[7]
        var versions = [try session.classifier.classify(photo)]
        let isDone = Atomic(false)
        let observed = Mutex(Set<[Classification]>())
        let failures = Atomic(0)
        // Dedicated threads: queued work might start only after the last change.
        let readers = DispatchGroup()
        let started = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
            readers.enter()
            Thread.detachNewThread {
                defer { readers.leave() }
                // Collected per thread, because ThreadSanitizer does not support Mutex and reports races on frequent locks.
                var local = Set<[Classification]>()
                defer { observed.withLock { $0.formUnion(local) } }
                var isFirst = true
                while isFirst || !isDone.load(ordering: .acquiring) {
                    if let classifications = try? session.classifier.classify(photo) {
                        local.insert(classifications)
                    } else {
                        failures.add(1, ordering: .relaxed)
                    }
                    if isFirst { started.signal() }
                    isFirst = false
                }
            }
        }
        for _ in 0..<2 { started.wait() }
        defer { isDone.store(true, ordering: .releasing) }
        for index in 0..<24 {
            if index % 4 == 3 {
                try session.undo()
            } else {
                try session.teach(photos[index % 7], as: index % 2 == 0 ? "stripes" : "left")
            }
            versions.append(try session.classifier.classify(photo))
        }
        isDone.store(true, ordering: .releasing)
        readers.wait()
        #expect(failures.load(ordering: .relaxed) == 0)
        let known = Set(versions)
        #expect(observed.withLock { $0.isSubset(of: known) && $0.count > 1 })
    }

    @Test("Settings out of range are rejected")
    func settings() throws {
        let changes: [(name: String, change: (inout PersonalizationConfiguration) -> Void)] = [
            ("views", { $0.views = 0 }), ("rank", { $0.rank = 65 }), ("penalty", { $0.penalty = -1 }),
            ("rehearsalWeight", { $0.rehearsalWeight = .nan }), ("blocks", { $0.blocks = 9 }),
            ("memoryLimit", { $0.memoryLimit = 0 }), ("timeLimit", { $0.timeLimit = .zero }),
            ("threads", { $0.threads = 0 }),
        ]
        for (name, change) in changes {
            var configuration = PersonalizationConfiguration()
            change(&configuration)
            let error = #expect(throws: ImprintError.self) {
                try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            }
            guard case .invalidSetting(name, _, _) = error else {
                Issue.record("\(name): \(String(describing: error))")
                continue
            }
        }
    }

    @Test("A diverged personalization is an error, and the session does not change")
    func diverged() throws {
        func check(
            _ configuration: PersonalizationConfiguration, _ teach: (PersonalizationSession) throws -> Void
        ) throws {
            let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            let before = try session.classifier.classify(photos[0])
            #expect(throws: ImprintError.personalizationDiverged) { try teach(session) }
            #expect(try session.personalization == nil && session.exampleCount == 0 && !session.undo())
            #expect(try session.classifier.classify(photos[0]) == before)
        }
        var configuration = PersonalizationConfiguration()
        // The product of the penalty and the number of channels overflows.
        configuration.penalty = .greatestFiniteMagnitude
        try check(configuration) { try $0.teach(photos[0], as: "left") }
        configuration = PersonalizationConfiguration()
        // The initial bias of the label is about half of the norm of its features, and float16 ends at 65,504.
        try check(configuration) { session in
            let count = try session.base.runtime.featureCount(blocks: 0)
            let features = [Float](repeating: 1e10, count: count)
            try session.add([Example(supervision: .isLabel("stripes"), views: [features])])
        }
        configuration.blocks = 1
        try check(configuration) { session in
            let count = try session.base.runtime.featureCount(blocks: 1)
            let features = [Float](repeating: .infinity, count: count)
            try session.add([Example(supervision: .isLabel("left"), views: [features])])
        }
    }

    @Test("A session rejects photos that exceed the memory limit")
    func memory() throws {
        var configuration = PersonalizationConfiguration()
        // One view with 32 channels needs 128 bytes.
        (configuration.views, configuration.memoryLimit) = (1, 300)
        let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
        try session.teach(photos[0], as: "left")
        try session.teach(photos[1], as: "left")
        #expect(throws: ImprintError.featuresExceedMemoryLimit(byteCount: 384, limit: 300)) {
            try session.teach(photos[2], as: "left")
        }
        #expect(session.exampleCount == 2)
        try session.undo()
        try session.teach(photos[2], as: "left")
    }

    @Test(
        "Logo detectors are personalized with the features at the positions that score highest",
        arguments: [["logo"], ["logo", "leaf"]])
    func detector(logos: [String]) throws {
        let images = [2, 5].flatMap { stripes($0, count: 3) }
        let model = try detectorModel(logos: logos)
        let base = try ImageClassifier(model)
        let before = try images.map { try base.confidence("logo", $0) }
        let session = try PersonalizationSession(base)
        for (index, image) in images.enumerated() { try session.teach(image, as: index < 3 ? "logo" : "nothing") }
        let after = try images.map { try session.classifier.confidence("logo", $0) }
        #expect((after[..<3].min() ?? 0) > (after[3...].max() ?? 1), "\(before) \(after)")
        #expect(try images.map { try base.confidence("logo", $0) } == before)
        #expect(try session.classifier.classify(images[0]).first { $0.label == "logo" }?.box != nil)
        #expect(throws: ImprintError.cannotAddLabel("tree", known: ["nothing"] + logos)) {
            try session.teach(images[0], as: "tree")
        }
    }

    @Test("A label that cannot be added is an error before a photo is read")
    func unknownDetectorLabel() throws {
        let missing = URL(filePath: "/nowhere/photo.png")
        let session = try PersonalizationSession(ImageClassifier(detectorModel(logos: ["logo"])))
        let error = ImprintError.cannotAddLabel("tree", known: ["nothing", "logo"])
        #expect(throws: error) { try session.teach(missing, as: "tree") }
        #expect(throws: error) { try session.teach([(photo: ImageSource.file(missing), label: "tree")]) }
        #expect(throws: ImprintError.unknownLabel("tree", known: ["nothing", "logo"])) {
            try session.correct(missing, isNot: "tree")
        }
        try withTemporaryFolder { folder in
            try write(stripes(2, count: 2), label: "tree", in: folder)
            let photos = try ImageFolder(at: folder, minimumLabels: 1)
            var readCount = 0
            #expect(throws: error) { _ = try session.teach(photos, onProgress: { done, _ in readCount = done }) }
            #expect(readCount == 0)
        }
        #expect(session.exampleCount == 0)
    }
}
