import Foundation
import ImprintImages
import ImprintModel
import Synchronization
import TestSupport
import Testing

@testable import Imprint

/// Tests of sessions that progress closures and several threads use during training.
@Suite struct SessionThreadTests {
    private let photos = stripes(2, count: 5)

    /// Calls `body` in the first training step of a session that has one photo and learns three more.
    private func duringTraining(of session: PersonalizationSession, _ body: @escaping () -> Void) throws {
        try session.teach(photos[0], as: "stripes")
        let examples = photos[1..<4].map { (photo: ImageSource.image($0), label: "stripes") }
        var stepCount = 0
        try session.teach(examples) { progress in
            guard case .step = progress else { return }
            stepCount += 1
            if stepCount == 1 { body() }
        }
        #expect(stepCount > 1 && session.exampleCount == 4)
    }

    @Test("A progress closure and other threads can read the session during training")
    func reading() throws {
        let session = try PersonalizationSession(leftOrRightClassifier())
        try duringTraining(of: session) {
            // The state before the call, because training has not finished.
            #expect(session.exampleCount == 1 && session.personalization?.record.examples == ["stripes": 1])
            let isRead = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                if session.exampleCount == 1 { isRead.signal() }
            }
            #expect(isRead.wait(timeout: .now() + 60) == .success)
        }
        #expect(session.personalization?.record.examples == ["stripes": 4])
    }

    @Test("The progress closure of training with a folder can read the session") func readingWithFolder() throws {
        try withTemporaryFolder { folder in
            try write(photos, label: "stripes", in: folder)
            let session = try PersonalizationSession(leftOrRightClassifier())
            var counts: [Int] = []
            _ = try session.teach(ImageFolder(at: folder, minimumLabels: 1)) { _, _ in
                counts.append(session.exampleCount)
            }
            // One call after reading the photos, the others during training.
            #expect(counts.count > 1 && counts.first == 0 && session.exampleCount == photos.count)
        }
    }

    @Test("A progress closure cannot change the session during training, and training continues")
    func changing() throws {
        let changes: [(PersonalizationSession, RasterImage) throws -> Void] = [
            { session, photo in try session.teach(photo, as: "left") },
            { session, photo in try session.correct(photo, isNot: "left") },
            { session, _ in try session.forget("stripes") },
            { session, _ in _ = try session.undo() },
        ]
        for change in changes {
            let session = try PersonalizationSession(leftOrRightClassifier())
            try duringTraining(of: session) {
                #expect(throws: ImprintError.sessionIsTraining) { try change(session, photos[4]) }
            }
            try change(session, photos[4])
        }
    }

    @Test(
        "A progress closure cannot train with a folder, which may continue on another thread", .timeLimit(.minutes(10)),
        arguments: [false, true])
    func changingWithFolder(isBackground: Bool) throws {
        try withTemporaryFolder { folder in
            try write(photos, label: "stripes", in: folder)
            let images = try ImageFolder(at: folder, minimumLabels: 1)
            var configuration = PersonalizationConfiguration()
            configuration.isBackground = isBackground
            let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            var errors: [(any Error)?] = []
            _ = try session.teach(images) { done, total in
                guard done == total else { return }
                do {
                    // The first call comes before training, in which the closure must not change the session.
                    if errors.isEmpty { errors.append(nil) } else { _ = try session.teach(images) }
                } catch {
                    errors.append(error)
                }
            }
            #expect(errors.count > 1)
            #expect(errors.dropFirst().allSatisfy { $0 as? ImprintError == .sessionIsTraining })
        }
    }

    @Test("Calls from several threads change the session one after another")
    func severalThreads() throws {
        let session = try PersonalizationSession(leftOrRightClassifier())
        let failureCount = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: photos.count) { index in
            do {
                try session.teach(photos[index], as: "stripes")
            } catch {
                failureCount.add(1, ordering: .relaxed)
            }
        }
        #expect(failureCount.load(ordering: .relaxed) == 0 && session.exampleCount == photos.count)
        for _ in photos { #expect(try session.undo()) }
        #expect(try session.exampleCount == 0 && !session.undo())
    }
}
