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

/// Teaching one photo at a time.
@Suite struct PersonalizationSessionTests {
    private let photos = stripes(2, count: 4) + stripes(5, count: 4)

    @Test("A new label is learnt from a few photos, and the old ones are kept")
    func newLabel() throws {
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base)
        for photo in stripes(2, count: 6) { try session.teach(photo, as: "stripes") }
        let classifier = session.classifier
        #expect(classifier.labels == ["left", "right", "stripes"] && base.labels == ["left", "right"])
        for photo in stripes(2, count: 10, seed: 9) { #expect(try classifier.classify(photo)[0].label == "stripes") }
        try withPictures(perLabel: 10, seed: 77) { folder in
            let before = try base.evaluate(on: ImageFolder(at: folder)).accuracy
            let after = try classifier.evaluate(on: ImageFolder(at: folder)).accuracy
            #expect(after >= before - 0.051, "\(before) \(after)")
        }
        #expect(try classifier.classify(photos[0]).map(\.confidence).reduce(0, +) - 1 < 1e-5)
    }

    @Test("Several photos at once tell how far it is, and are taken back at once", arguments: [0, 1])
    func several(blocks: Int) throws {
        var configuration = PersonalizationConfiguration()
        configuration.blocks = blocks
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base, configuration: configuration)
        let shown = stripes(2, count: 5).map { (photo: ImageSource.image($0), label: "stripes") }
        var looked: [Int] = []
        var steps: [PersonalizationProgress.Step] = []
        try session.teach(shown) { progress in
            switch progress {
            case .looked(let done, let total):
                looked.append(done)
                #expect(total == 5)
            case .step(let step): steps.append(step)
            }
        }
        #expect(looked.last == 5 && looked == looked.sorted())
        #expect(steps.count > 5 && steps.map(\.step) == steps.map(\.step).sorted())
        #expect(steps.allSatisfy { $0.loss.isFinite && (0...1).contains($0.accuracy) && $0.step <= $0.steps })
        let (first, last) = (try #require(steps.first), try #require(steps.last))
        #expect(last.step == last.steps && last.loss < first.loss && last.accuracy == 1)
        #expect(try session.classifier.classify(stripes(2, count: 1, seed: 5)[0])[0].label == "stripes")
        #expect(try session.undo())
        #expect(try session.classifier.classify(photos[0]) == base.classify(photos[0]) && session.exampleCount == 0)
        #expect(throws: ImageError.self) {
            try session.teach([shown[0], (photo: .data(Data("no picture".utf8)), label: "stripes")])
        }
        let control = PersonalizationControl()
        #expect(throws: CancellationError.self) {
            try session.teach(shown, control: control) { if case .step = $0 { control.cancel() } }
        }
        #expect(session.exampleCount == 0 && session.classifier.labels == ["left", "right"])
        configuration.memoryLimit = 1000
        let small = try PersonalizationSession(base, configuration: configuration)
        var seen = 0
        #expect(throws: ImprintError.self) {
            try small.teach(Array(repeating: shown[0], count: 1000)) {
                if case .looked(let done, _) = $0 { seen = done }
            }
        }
        // It does not look at all of them before it says so.
        #expect(seen < 500)
    }

    @Test("What is taken back is as it was, to the last bit; so is the base")
    func undo() throws {
        let base = try leftOrRightClassifier()
        let session = try PersonalizationSession(base)
        var versions: [[Classification]] = [try base.classify(photos[0])]
        for (place, photo) in photos.enumerated() {
            try session.teach(photo, as: place < 4 ? "stripes" : "left")
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
        "What was saved gives the same confidences as the session, with and without adapted blocks",
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
            #expect(read == session.personalization && read.factors.count == blocks)
            #expect(read.record == Personalization.Record(examples: ["stripes": 1, "right": 1]))
            let loaded = try base.personalized(with: read)
            #expect(try photos.map { try loaded.classify($0) } == photos.map { try session.classifier.classify($0) })
            // A copy of the whole model rounds in another order at most.
            let whole = try ImageClassifier(leftOrRight().personalized(with: read))
            for photo in photos {
                let (one, other) = (try whole.classify(photo)[0], try loaded.classify(photo)[0])
                #expect(one.label == other.label && abs(one.confidence - other.confidence) < 1e-4)
            }
        }
        #expect(try base.classify(photos[5]) == before)
    }

    @Test("The same photos give the same personalization; features are those of the photo alone")
    func repeatable() throws {
        func taught(_ photos: [RasterImage]) throws -> Personalization? {
            let session = try PersonalizationSession(leftOrRightClassifier())
            for photo in photos { try session.teach(photo, as: "stripes") }
            return session.personalization
        }
        #expect(try taught(photos) == taught(photos))
        #expect(try taught(photos) != taught(Array(photos.dropLast())))
    }

    @Test("A correction lowers the confidence in the label that it is about")
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

    @Test("A label that is forgotten is gone, and comes back when that is taken back")
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

    @Test("A session goes on from what was saved, and forgets labels of it")
    func goesOn() throws {
        let first = try PersonalizationSession(leftOrRightClassifier())
        for photo in stripes(2, count: 4) { try first.teach(photo, as: "stripes") }
        let second = try PersonalizationSession(first.classifier)
        #expect(second.base.labels == ["left", "right"] && second.exampleCount == 0)
        for photo in stripes(5, count: 4) { try second.teach(photo, as: "wide") }
        #expect(second.classifier.labels == ["left", "right", "stripes", "wide"])
        #expect(second.personalization?.record.examples == ["stripes": 4, "wide": 4])
        for (width, label) in [(2, "stripes"), (5, "wide")] {
            let right = try stripes(width, count: 10, seed: 4).count {
                try second.classifier.classify($0)[0].label == label
            }
            #expect(right >= 8, "\(label)")
        }
        try second.forget("stripes")
        #expect(second.classifier.labels == ["left", "right", "wide"])
        for _ in 0..<5 { try second.undo() }
        #expect(second.personalization == first.personalization)
    }

    @Test("Features of the base's photos keep it from forgetting")
    func rehearsal() throws {
        /// By how much confidences in what the base was trained on change.
        func change(_ weight: Float) throws -> Float {
            var configuration = PersonalizationConfiguration()
            configuration.rehearsalWeight = weight
            let base = try leftOrRightClassifier()
            let session = try PersonalizationSession(base, configuration: configuration)
            for photo in photos { try session.teach(photo, as: "left") }
            return try withPictures(perLabel: 8, seed: 31) { folder in
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

    @Test("Other threads classify with one version or another, never with something between")
    func hotSwap() throws {
        let session = try PersonalizationSession(leftOrRightClassifier())
        let photo = photos[7]
        var versions = [try session.classifier.classify(photo)]
        let isDone = Atomic(false)
        let seen = Mutex(Set<[Classification]>())
        let failures = Atomic(0)
        // Threads of their own: work that is queued may wait until nothing is left to see.
        let readers = DispatchGroup()
        let haveBegun = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
            readers.enter()
            Thread.detachNewThread {
                defer { readers.leave() }
                // Collected apart: threads that wait for one Mutex all the time are a race to ThreadSanitizer, which does not know it.
                var own = Set<[Classification]>()
                defer { seen.withLock { $0.formUnion(own) } }
                var isFirst = true
                while isFirst || !isDone.load(ordering: .acquiring) {
                    if let observations = try? session.classifier.classify(photo) {
                        own.insert(observations)
                    } else {
                        failures.add(1, ordering: .relaxed)
                    }
                    if isFirst { haveBegun.signal() }
                    isFirst = false
                }
            }
        }
        for _ in 0..<2 { haveBegun.wait() }
        defer { isDone.store(true, ordering: .releasing) }
        for place in 0..<24 {
            if place % 4 == 3 {
                try session.undo()
            } else {
                try session.teach(photos[place % 7], as: place % 2 == 0 ? "stripes" : "left")
            }
            versions.append(try session.classifier.classify(photo))
        }
        isDone.store(true, ordering: .releasing)
        readers.wait()
        #expect(failures.load(ordering: .relaxed) == 0)
        let known = Set(versions)
        #expect(seen.withLock { $0.isSubset(of: known) && $0.count > 1 })
    }

    @Test("Settings out of range are errors that say what is expected")
    func settings() throws {
        let changes: [(inout PersonalizationConfiguration) -> Void] = [
            { $0.views = 0 }, { $0.rank = 65 }, { $0.penalty = -1 }, { $0.rehearsalWeight = .nan }, { $0.blocks = 9 },
            { $0.memoryLimit = 0 }, { $0.timeLimit = .zero }, { $0.threads = 0 },
        ]
        for change in changes {
            var configuration = PersonalizationConfiguration()
            change(&configuration)
            #expect(throws: ImprintError.self) {
                try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            }
        }
    }

    @Test("A session keeps to its memory")
    func memory() throws {
        var configuration = PersonalizationConfiguration()
        // One view of 32 channels takes 128 bytes.
        (configuration.views, configuration.memoryLimit) = (1, 300)
        let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
        try session.teach(photos[0], as: "left")
        try session.teach(photos[1], as: "left")
        #expect(throws: ImprintError.featuresExceedMemoryLimit(byteCount: 384, limit: 300)) { try session.teach(photos[2], as: "left") }
        #expect(session.exampleCount == 2)
        try session.undo()
        try session.teach(photos[2], as: "left")
    }

    @Test(
        "Logo detectors are personalized with the features at the positions that score highest",
        arguments: [["logo"], ["logo", "leaf"]])
    func detector(marks: [String]) throws {
        let pictures = [2, 5].flatMap { stripes($0, count: 3) }
        let model = try detectorModel(marks: marks)
        let base = try ImageClassifier(model)
        let before = try pictures.map { try base.confidence("logo", $0) }
        let session = try PersonalizationSession(base)
        for (place, picture) in pictures.enumerated() { try session.teach(picture, as: place < 3 ? "logo" : "nothing") }
        let after = try pictures.map { try session.classifier.confidence("logo", $0) }
        #expect((after[..<3].min() ?? 0) > (after[3...].max() ?? 1), "\(before) \(after)")
        #expect(try pictures.map { try base.confidence("logo", $0) } == before)
        #expect(try session.classifier.classify(pictures[0]).first { $0.label == "logo" }?.box != nil)
        #expect(throws: ImprintError.cannotAddLabel("tree", known: ["nothing"] + marks)) {
            try session.teach(pictures[0], as: "tree")
        }
    }
}
