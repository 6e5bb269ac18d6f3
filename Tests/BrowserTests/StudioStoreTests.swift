import Dispatch
import FlyingFox
import Foundation
import ImprintImages
import ImprintTraining
import Synchronization
import TestSupport
import Testing

@testable import ImprintStudio

/// The stored photos and the responses of the studio, without a server.
@Suite("Stores of the studio") struct StudioStoreTests {
    @Test("A photo that replaces a deleted one has its name, and the deletion can be undone") func names() throws {
        try withTemporaryFolder { folder in
            let store = PhotoStore(temporaryFolder: folder)
            defer { store.close() }
            let first = try store.add(Data("first".utf8), label: "cat", name: "2026/1.jpg")
            try store.remove([first])
            let second = try store.add(Data("second".utf8), label: "cat", name: "2026/1.jpg")
            let third = try store.add(Data("third".utf8), label: "cat", name: "2026/1.jpg")
            #expect(try store.photo(second).name == "2026/1.jpg" && store.photo(third).name == "2026/1 (2).jpg")
            try store.undo()
            for (id, text) in [(first, "first"), (second, "second"), (third, "third")] {
                let photo = try store.photo(id)
                #expect(try Data(contentsOf: photo.url) == Data(text.utf8))
                #expect(photo.url.path.hasPrefix(folder.path))
            }
            let source = store.trainingData.source
            #expect(Set(source.items.map { source.identifier(of: $0) }).count == 3)
        }
    }

    @Test("A studio removes only private folders that no other studio uses") func staleFolders() throws {
        try withTemporaryFolder { parent in
            let used = try PrivateFolder(in: parent)
            // Process 1 always runs, but is no studio.
            let left = parent.appending(path: "imprint-studio-1-left")
            try FileManager.default.createDirectory(
                at: left.appending(path: "files"), withIntermediateDirectories: true)
            try Data().write(to: left.appending(path: "lock"))
            let unlockable = parent.appending(path: "imprint-studio-2-other")
            try FileManager.default.createDirectory(at: unlockable, withIntermediateDirectories: true)
            PrivateFolder.removeStale(in: parent)
            #expect(
                [used.url, left, unlockable].map { FileManager.default.fileExists(atPath: $0.path) } == [
                    true, false, true,
                ])
            let attributes = try FileManager.default.attributesOfItem(
                atPath: used.url.deletingLastPathComponent().path)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
            try used.remove()
            #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path) == ["imprint-studio-2-other"])
        }
    }

    @Test(
        "A studio does not remove the folder of another user, which they could change meanwhile",
        .enabled(if: geteuid() == 0, "only root can make a folder of another user"))
    func foldersOfOthers() throws {
        try withTemporaryFolder { parent in
            let folder = parent.appending(path: "imprint-studio-1-other")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data().write(to: folder.appending(path: "lock"))
            try #require(chown(folder.path, 12345, 12345) == 0)
            PrivateFolder.removeStale(in: parent)
            #expect(FileManager.default.fileExists(atPath: folder.appending(path: "lock").path))
        }
    }

    // MARK: Photos with boxes

    private static let photo = Result {
        Data(try ImageFile.encodeJPEG(RasterImage(width: 200, height: 100, filledWith: 90)))
    }

    @Test("A new photo gets neither the boxes of a missing photo nor the name of a deleted one") func boxNames() throws
    {
        try withTemporaryFolder { folder in
            let text = """
                {"images": [{"id": 1, "file_name": "images/00001.jpeg", "width": 200, "height": 100}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [20, 10, 40, 20]}],
                "categories": [{"id": 1, "name": "leaf"}]}
                """
            try Data(text.utf8).write(to: folder.appending(path: "boxes.json"))
            let store = BoxStore(folder: folder, threads: 1)
            #expect(try store.add(Self.photo.get()) == "00001.jpeg")
            store.close()
            let other = BoxStore(folder: folder, threads: 1)
            #expect(try other.content.photos.map(\.objects.count) == [0])
            #expect(try Data(contentsOf: folder.appending(path: "boxes-1.json")) == Data(text.utf8))
            // Another page may still edit the deleted photo.
            let second = try other.add(Self.photo.get())
            try other.remove(second)
            #expect(try other.add(Self.photo.get()) == "00003.jpeg" && second == "00002.jpeg")
            other.close()
        }
    }

    @Test("A studio does not remove the folder that another one creates at the same time")
    func simultaneousFolders() throws {
        try withTemporaryFolder { parent in
            let problems = Mutex<[String]>([])
            DispatchQueue.concurrentPerform(iterations: 100) { _ in
                do {
                    let folder = try PrivateFolder(in: parent)
                    PrivateFolder.removeStale(in: parent)
                    let isKept = FileManager.default.fileExists(atPath: folder.url.path)
                    // A studio that is killed at any time leaves only names that the next one finds.
                    let names = try FileManager.default.contentsOfDirectory(atPath: parent.path)
                    let others = names.filter { !$0.hasPrefix("imprint-studio-") }
                    try folder.remove()
                    if !isKept || !others.isEmpty { problems.withLock { $0.append("\(isKept) \(others)") } }
                } catch {
                    problems.withLock { $0.append("\(error)") }
                }
            }
            let found = problems.withLock { $0 }
            #expect(found == [])
            let left = try FileManager.default.contentsOfDirectory(atPath: parent.path)
            #expect(left.isEmpty)
        }
    }

    // MARK: Artwork

    @Test("Artwork that changes while it is prepared is prepared again, and matching ends without artwork")
    func changedArtwork() async throws {
        try await withTemporaryFolder { folder in
            let store = ArtworkStore(temporaryFolder: folder)
            try await store.add(try LogoSamples.artwork(side: 128), label: "leaf", name: "leaf.png")
            let item = try #require(store.items.first)
            let id = "\(item.id)"
            let trainer = ExampleTrainer(
                nil, threads: 1, installer: StudioSamples.installer(folder), temporaryFolder: folder)
            var reads = 0
            try await trainer.startMatching {
                let current = store.current
                reads += 1
                if reads == 1 { try? store.rename(id, to: "Leaf") }
                return current
            }
            #expect(reads == 3 && trainer.matching?.labels == ["Leaf"])
            await #expect(throws: RequestError.self) {
                try await trainer.startMatching {
                    let current = store.current
                    if !current.artwork.isEmpty { try? store.remove(id) }
                    return current
                }
            }
            #expect(trainer.matching == nil)
        }
    }

    // MARK: Training

    @Test("A run that is stopped while its report is written does not change the model")
    func stoppedReport() async throws {
        try await withTemporaryFolder { folder in
            let store = PhotoStore(temporaryFolder: folder)
            defer { store.close() }
            // The report contains an audit of the photos, so it takes a while.
            for kind in [StudioSamples.Kind.bright, .dark] {
                for index in 0..<12 {
                    let image = StudioSamples.image(kind, seed: UInt64(index), width: 1024, height: 768)
                    _ = try store.add(
                        Data(try ImageFile.encodeJPEG(image)), label: kind.rawValue, name: "\(index).jpg")
                }
            }
            var configuration = PhotoSamples.configuration(epochs: 1)
            configuration.validation = .none
            let trainer = ExampleTrainer(
                nil, threads: 1, installer: StudioSamples.installer(folder), temporaryFolder: folder)
            try trainer.start(store.trainingData.source, audit: nil, configuration) { _ in
                Issue.record("The stopped run has an evaluation.")
            }
            while trainer.status.stage == .running, trainer.status.message != "Writing the report …" {
                try await Task.sleep(for: .milliseconds(1))
            }
            await trainer.stop()
            #expect(trainer.status.stage == .stopped, "\(trainer.status.message)")
            #expect(trainer.status.message == "Stopped; the model did not change.")
            #expect(trainer.learned == nil && trainer.classifier == nil && trainer.report == nil)
        }
    }

    private struct UnexpectedError: Error, CustomStringConvertible {
        var description: String { "the model has no labels. Train it again." }
    }

    @Test("Every error is a response with its message") func failures() async throws {
        let photo = URL(filePath: "/photos/a.jpg")
        let unreadable = ImageError.unreadable(file: photo, reason: "No such file or directory")
        let cases: [(error: any Error, status: Int, message: String)] = [
            (UnexpectedError(), 500, "The model has no labels. Train it again."),
            (RequestError("There is no photo.", .notFound), 404, "There is no photo."),
            (unreadable, 422, "\(unreadable)"),
        ]
        for (error, status, message) in cases {
            let response = HTTPResponse.failure(error)
            let bytes = try await response.bodyData
            #expect(response.statusCode.code == status)
            #expect(try JSONDecoder().decode([String: String].self, from: bytes) == ["error": message])
        }
    }
}
