import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// The requests of the panel Photos: photos with labels, their audit, training, the report and the exports.
@Suite("Any photos in the studio") struct StudioPhotosTests {
    private struct Photos: Decodable {
        struct Label: Decodable, Equatable {
            let label: String
            let count: Int
        }
        struct Photo: Decodable {
            let id: Int
            let label: String
            let name: String
        }
        struct Group: Decodable {
            struct Finding: Decodable {
                let photos: [Photo]
                let reason: String
            }
            let kind: String
            let count: Int
            let findings: [Finding]
        }
        let count: Int
        let labels: [Label]
        let isAudited: Bool
        let uncheckedCount: Int
        let groups: [Group]
        let shortage: String?
        let undo: String?

        func group(_ kind: Audit.Finding.Kind) -> Group? { groups.first { $0.kind == kind.rawValue } }
    }

    private struct Status: Decodable {
        let stage: String
        let message: String
        let panel: String
        let validates: Bool
    }

    private struct AuditProgress: Decodable {
        let version: Int
        let isRunning: Bool
    }

    private struct Model: Decodable {
        let name: String?
        let labels: [String]
        let learned: String?
        let hasReport: Bool
    }

    private struct Added: Decodable { let id: Int }

    private static func add(_ photo: Data, _ label: String, _ name: String, _ client: StudioClient) async throws -> Int
    {
        let added: Added = try StudioClient.decoded(
            try await client.ask("POST", "photos", ["label": label, "name": name], photo))
        return added.id
    }

    /// Audits the photos, and returns the findings.
    private static func audit(_ client: StudioClient) async throws -> Photos {
        var progress: AuditProgress = try StudioClient.decoded(try await client.ask("POST", "audit"))
        while progress.isRunning {
            progress = try StudioClient.decoded(try await client.ask("GET", "audit", ["after": "\(progress.version)"]))
        }
        return try StudioClient.decoded(try await client.ask("GET", "photos"))
    }

    /// Trains on the photos, and returns the status at the end.
    private static func train(_ client: StudioClient) async throws -> Status {
        var status: Status = try StudioClient.decoded(try await client.ask("POST", "photo-training"))
        #expect(status.stage == "running" && status.panel == "photos")
        while status.stage == "running" {
            try await Task.sleep(for: .milliseconds(100))
            status = try StudioClient.decoded(try await client.ask("GET", "training"))
        }
        #expect(status.stage == "learned", "\(status.message)")
        return status
    }

    @Test("The audit finds copies and wrong labels, and changes can be undone") func fixes() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            for label in PhotoSamples.labels {
                for index in 0..<6 {
                    let photo = try PhotoSamples.jpeg(label, index)
                    _ = try await Self.add(photo, label, "2026/IMG_\(index * 10).jpg", client)
                }
            }
            _ = try await Self.add(try PhotoSamples.jpeg("Bright", 0), "Bright", "copy.jpg", client)
            let wrong = try await Self.add(
                Data(try ImageFile.encodePNG(PhotoSamples.image("Bright", 1))), "Dark", "wrong.png", client)
            let found = try await Self.audit(client)
            #expect(found.count == 14 && found.isAudited && found.uncheckedCount == 0 && found.shortage == nil)
            #expect(found.labels == [.init(label: "Bright", count: 7), .init(label: "Dark", count: 7)])
            let copies = try #require(found.group(.copies))
            #expect(copies.count == 1 && copies.findings[0].photos.map(\.name) == ["2026/IMG_0.jpg", "copy.jpg"])
            let across = try #require(found.group(.acrossLabels))
            #expect(Set(across.findings.flatMap(\.photos).map(\.name)) == ["2026/IMG_10.jpg", "wrong.png"])

            let ids = ["ids": "\(wrong)"]
            let fixed: Photos = try StudioClient.decoded(
                try await client.ask("PUT", "photos", ["ids": "\(wrong)", "label": "Bright"]))
            #expect(fixed.group(.acrossLabels) == nil && fixed.labels.map(\.count) == [8, 6])
            #expect(fixed.undo == "Changed the label of “wrong.png” to “Bright”.")
            let undone: Photos = try StudioClient.decoded(try await client.ask("POST", "photos-undo"))
            #expect(undone.group(.acrossLabels) != nil && undone.labels.map(\.count) == [7, 7] && undone.undo == nil)
            let deleted: Photos = try StudioClient.decoded(try await client.ask("DELETE", "photos", ids))
            #expect(deleted.count == 13 && deleted.group(.acrossLabels) == nil)
            #expect(deleted.undo == "Deleted “wrong.png”.")
            #expect(try await client.ask("GET", "photo", ["id": "\(wrong)"]).status == 404)
            let restored: Photos = try StudioClient.decoded(try await client.ask("POST", "photos-undo"))
            #expect(restored.count == 14)
            let picture = try await client.ask("GET", "photo", ["id": "\(wrong)", "size": "small"])
            #expect(picture.status == 200 && picture.headers["content-type"] == "image/jpeg")
            #expect(try await client.ask("POST", "photos-undo").status == 404)

            _ = try await Self.add(try PhotoSamples.jpeg("Dark", 9), "Dark", "new.jpg", client)
            let later: Photos = try StudioClient.decoded(try await client.ask("GET", "photos"))
            #expect(later.uncheckedCount == 1)
            let empty: Photos = try StudioClient.decoded(try await client.ask("DELETE", "photos", ["ids": "all"]))
            #expect(empty.count == 0 && !empty.isAudited && empty.groups.isEmpty && empty.shortage != nil)
        }
    }

    @Test("Invalid photos, labels, names and numbers are rejected") func invalid() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            let photo = try PhotoSamples.jpeg("Bright", 0)
            func status(_ label: String, _ name: String, _ photo: Data) async throws -> Int {
                try await client.ask("POST", "photos", ["label": label, "name": name], photo).status
            }
            let unreadable = try await client.ask(
                "POST", "photos", ["label": "Bright", "name": "1.jpg"], Data("no image".utf8))
            #expect(unreadable.status == 422 && unreadable.error != nil)
            #expect(try await status("Bright", "1.jpg", Data()) == 400)
            for label in ["", " a", ".a", "a/b", "a\nb", String(repeating: "x", count: 101)] {
                #expect(try await status(label, "1.jpg", photo) == 400, "\(label)")
            }
            for name in ["", "../1.jpg", "a//1.jpg", "/1.jpg", ".1.jpg", "a\nb", String(repeating: "x", count: 201)] {
                #expect(try await status("Bright", name, photo) == 400, "\(name)")
            }
            #expect(try await client.ask("POST", "photos", ["label": "Bright"], photo).status == 400)
            let id = try await Self.add(photo, "Bright", "1.jpg", client)
            #expect(try await status("Bright", "1.jpg", photo) == 409)
            // Another photo with the same name gets a number.
            let other = try await Self.add(try PhotoSamples.jpeg("Bright", 1), "Bright", "1.jpg", client)
            let removed: Photos = try StudioClient.decoded(
                try await client.ask("DELETE", "photos", ["ids": "\(other)"]))
            #expect(removed.undo == "Deleted “1 (2).jpg”.")
            for (parameters, expected) in [
                (["ids": "99"], 404), (["ids": "\(id),99"], 404), (["ids": "x"], 400), (["ids": ""], 400), ([:], 400),
            ] {
                #expect(try await client.ask("DELETE", "photos", parameters).status == expected, "\(parameters)")
            }
            #expect(try await client.ask("PUT", "photos", ["ids": "\(id)", "label": "Bird"]).status == 404)
            #expect(try await client.ask("PUT", "photos", ["ids": "\(id)"]).status == 400)
            #expect(try await client.ask("GET", "photo", ["id": "x"]).status == 400)
            let single = try await client.ask("POST", "photo-training")
            #expect(single.status == 409 && single.error?.contains("at least two labels") == true)
            #expect(try await client.ask("DELETE", "photos", ["ids": "all"]).status == 200)
            #expect(try await client.ask("POST", "photo-training").status == 409)
            #expect(try await client.ask("POST", "audit").status == 409)
            for (path, parameters) in [("report", [:]), ("export", ["format": "onnx"])] {
                #expect(try await client.ask("GET", path, parameters).status == 404)
            }
            #expect(try await client.ask("GET", "export", ["format": "gif"]).status == 400)
        }
    }

    @Test("Training gives the same model as training on the folder, with a report and exports") func training()
        async throws
    {
        try await PhotoSamples.withStudio(PhotoSamples.configuration()) { studio, folder in
            let client = try await StudioClient.enter(studio).client
            let photos = folder.appending(path: "pets")
            try PhotoSamples.write(to: photos)
            for item in try ImageFolder(at: photos).items {
                let parts = item.url.pathComponents.suffix(2)
                _ = try await Self.add(
                    try Data(contentsOf: item.url), parts[parts.startIndex], parts.last ?? "", client)
            }
            let status = try await Self.train(client)
            #expect(status.validates)
            #expect(status.message.hasPrefix("Trained on ") && status.message.contains(" validation photos: "))
            let model: Model = try StudioClient.decoded(try await client.ask("GET", "model"))
            #expect(model.name == "A new model" && model.labels == PhotoSamples.labels)
            #expect(model.learned == "model" && model.hasReport)

            var expected: Data?
            for try await case .finished(let result) in ClassifierTrainer(
                photos: try ImageFolder(at: photos), configuration: PhotoSamples.configuration()
            ).start() {
                try result.model.write(to: folder.appending(path: "expected.imprint"))
                expected = try Data(contentsOf: folder.appending(path: "expected.imprint"))
            }
            #expect(try await client.ask("GET", "learned").body == expected)

            let report = try await client.ask("GET", "report")
            let html = String(decoding: report.body, as: UTF8.self)
            #expect(report.status == 200 && report.headers["content-type"]?.hasPrefix("text/html") == true)
            #expect(report.headers["content-security-policy"]?.hasPrefix("default-src 'none'; ") == true)
            #expect(html.contains("Confusion matrix") && html.contains("Data set") && !html.contains("<script"))
            let onnx = try await client.ask("GET", "export", ["format": "onnx"])
            #expect(onnx.status == 200 && onnx.body.range(of: Data("imprint.labels".utf8)) != nil)
            #expect(onnx.headers["content-disposition"] == "attachment; filename=\"model.onnx\"")
            let coreML = try await client.ask("GET", "export", ["format": "coreml"])
            #expect(coreML.status == 200 && coreML.body.range(of: Data("imprint.labels".utf8)) != nil)
            #expect(coreML.headers["content-disposition"] == "attachment; filename=\"model.mlmodel\"")

            let reverted: Model = try StudioClient.decoded(try await client.ask("POST", "revert"))
            #expect(reverted.name == nil && !reverted.hasReport)
            #expect(try await client.ask("GET", "report").status == 404)
        }
    }

    @Test("Validation photos that the trained model labels differently are findings until they are fixed")
    func disagreements() async throws {
        var configuration = PhotoSamples.configuration()
        configuration.validation = .fraction(0.5)
        try await PhotoSamples.withStudio(configuration) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            // Half of the photos have the wrong label, so no model can be right about all of them.
            for (index, label) in PhotoSamples.labels.enumerated() {
                for number in 0..<12 {
                    let chosen = number.isMultiple(of: 2) ? label : PhotoSamples.labels[1 - index]
                    _ = try await Self.add(
                        try PhotoSamples.jpeg(label, number), chosen, "\(label)-\(10 * number).jpg", client)
                }
            }
            _ = try await Self.train(client)
            let found: Photos = try StudioClient.decoded(try await client.ask("GET", "photos"))
            let group = try #require(found.groups.first { $0.kind == "disagreements" })
            let finding = try #require(group.findings.first)
            let photo = try #require(finding.photos.first)
            let other = try #require(PhotoSamples.labels.first { $0 != photo.label })
            #expect(finding.reason.hasPrefix("The model predicts “\(other)” with ") && finding.reason.hasSuffix(" %."))
            let fixed: Photos = try StudioClient.decoded(
                try await client.ask("PUT", "photos", ["ids": "\(photo.id)", "label": other]))
            #expect((fixed.groups.first { $0.kind == "disagreements" }?.count ?? 0) == group.count - 1)
            #expect(try await client.ask("POST", "revert").status == 200)
            let reverted: Photos = try StudioClient.decoded(try await client.ask("GET", "photos"))
            #expect(!reverted.groups.contains { $0.kind == "disagreements" })
        }
    }

    @Test("Requests about photos need access, and changes need the origin of the page") func access() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            var client = try await StudioClient.enter(studio).client
            let stranger = StudioClient(url: client.url)
            let changes = [
                ("POST", "photos"), ("PUT", "photos"), ("DELETE", "photos"), ("POST", "photos-undo"),
                ("POST", "audit"), ("POST", "photo-training"),
            ]
            let reads = ["photos", "photo", "audit", "report", "export"].map { ("GET", $0) }
            for (method, path) in changes + reads {
                #expect(try await stranger.ask(method, path, ["ids": "all", "id": "1"]).status == 403)
            }
            client.origin = "http://example.com"
            for (method, path) in changes {
                #expect(try await client.ask(method, path, ["ids": "all"]).status == 403)
            }
        }
    }
}

/// Small photos of two labels, and a configuration that trains on them in seconds.
enum PhotoSamples {
    static let labels = ["Bright", "Dark"]

    /// Returns an image of blocks with random grey levels, which are bright or dark.
    static func image(_ label: String, _ index: Int) -> RasterImage {
        var stream = RandomStream(seed: 7, label, index)
        let (width, height, block) = (96, 72, 12)
        let base = label == "Bright" ? 130 : 5
        let levels = (0..<(width / block * height / block)).map { _ in UInt8(base + stream.index(below: 120)) }
        var image = RasterImage(width: width, height: height)
        for row in 0..<height {
            for column in 0..<width {
                let level = levels[row / block * (width / block) + column / block]
                for channel in 0..<3 { image.samples[(row * width + column) * 3 + channel] = level }
            }
        }
        return image
    }

    static func jpeg(_ label: String, _ index: Int) throws -> Data {
        Data(try ImageFile.encodeJPEG(image(label, index)))
    }

    /// Writes 12 photos of each label to a folder.
    static func write(to folder: URL) throws {
        for label in labels {
            let part = folder.appending(path: label)
            try FileManager.default.createDirectory(at: part, withIntermediateDirectories: true)
            for index in 0..<12 { try jpeg(label, index).write(to: part.appending(path: "IMG_\(10 * index).jpg")) }
        }
    }

    static func configuration(epochs: Int = 3) -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        configuration.start = .network("logonet", width: 0.125)
        configuration.inputSize = 16
        configuration.batchSize = 8
        configuration.epochs = epochs
        configuration.validation = .fraction(0.25)
        return configuration
    }

    /// Runs `body` with a studio without a model.
    static func withStudio(
        _ configuration: ClassifierConfiguration, _ body: (Studio, URL) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let studio = try await Studio(
                nil, installer: StudioSamples.installer(folder), photoConfiguration: configuration)
            do {
                try await body(studio, folder)
            } catch {
                await studio.stop()
                throw error
            }
            await studio.stop()
        }
    }
}
