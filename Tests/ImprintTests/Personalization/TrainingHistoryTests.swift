import ImprintCore
import ImprintImages
import ImprintModel
import Testing

@testable import Imprint

/// Tests of the steps that `PersonalizationSession.undo()` reverts, and of their memory.
@Suite struct TrainingHistoryTests {
    private let photos = stripes(2, count: 4) + stripes(5, count: 4)

    /// Returns a session with one view per photo, whose features take 128 bytes.
    private func session(memoryLimit: Int) throws -> PersonalizationSession {
        var configuration = PersonalizationConfiguration()
        (configuration.views, configuration.memoryLimit) = (1, memoryLimit)
        return try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
    }

    @Test("A session that repeatedly teaches and forgets a label stays within its memory limit")
    func bounded() throws {
        // Two photos fit.
        let session = try session(memoryLimit: 300)
        for photo in photos {
            try session.teach(photo, as: "stripes")
            #expect(session.byteCount <= 300)
            try session.forget("stripes")
            #expect(session.byteCount <= 300)
        }
        // The photos of the last two rounds can be restored.
        for exampleCount in [1, 0, 1, 0] {
            #expect(try session.undo())
            #expect(session.exampleCount == exampleCount)
        }
        #expect(try !session.undo())
    }

    @Test("The last call can be undone, also if all photos that fit are forgotten")
    func lastCall() throws {
        let session = try session(memoryLimit: 300)
        for photo in photos[..<2] { try session.teach(photo, as: "stripes") }
        let taught = session.personalization
        try session.forget("stripes")
        #expect(session.byteCount == 256)
        #expect(try session.undo())
        #expect(session.personalization == taught && session.exampleCount == 2)
        try session.forget("stripes")
        // The new photo needs the memory of the forgotten ones.
        try session.teach(photos[4], as: "left")
        #expect(session.byteCount == 128)
        #expect(try session.undo())
        #expect(try session.exampleCount == 0 && !session.undo())
    }

    @Test("undo() restores forgotten photos in their original order")
    func order() throws {
        let session = try session(memoryLimit: 1 << 20)
        for (photo, label) in zip(photos, ["stripes", "wide", "stripes", "left", "wide", "stripes"]) {
            try session.teach(photo, as: label)
        }
        let taught = session.personalization
        for label in ["stripes", "wide"] { try session.forget(label) }
        #expect(session.classifier.labels == ["left", "right"] && session.exampleCount == 1)
        for _ in 0..<2 { try session.undo() }
        #expect(session.personalization == taught && session.byteCount == 6 * 128)
    }

    @Test("Undone photos take no memory")
    func undone() throws {
        let session = try session(memoryLimit: 300)
        for photo in photos {
            try session.teach(photo, as: "stripes")
            try session.undo()
        }
        #expect(session.byteCount == 0 && session.personalization == nil)
    }
}
