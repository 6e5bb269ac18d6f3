import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintInterop
import ImprintModel
import ImprintStore
import TestSupport
import Testing

@testable import ImprintTraining

/// Installations from local files, and the folder of installed base models.
@Suite struct InstallationTests {
    @Test("The default folder follows IMPRINT_HOME, then XDG_DATA_HOME, then the home folder")
    func defaultFolder() {
        let home = URL(filePath: "/home/ada")
        func path(_ environment: [String: String]) -> String {
            BaseModels.defaultFolder(environment: environment, home: home).path
        }
        #expect(path(["IMPRINT_HOME": "/data", "XDG_DATA_HOME": "/xdg"]) == "/data/models")
        #if !canImport(Darwin)
            #expect(path(["XDG_DATA_HOME": "/xdg"]) == "/xdg/imprint/models")
            #expect(path(["XDG_DATA_HOME": "relative", "IMPRINT_HOME": ""]) == "/home/ada/.local/share/imprint/models")
        #endif
    }

    @Test("A model file is installed with the same bytes, a record and no other file")
    func modelFile() async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            #expect(try bases.installed.isEmpty)
            let file = folder.appending(path: "mine.imprint")
            try model.bytes.write(to: file)
            let base = try await BaseModelInstaller(into: bases).install(from: file)
            #expect(base.name == "mine" && base.digest == model.sha256 && base.sourceDigest == model.sha256)
            #expect(base.source?.kind == .file && base.source?.location == file.path && base.license == nil)
            #expect(files(of: bases) == ["mine.json", modelFileName("mine", model.sha256)])
            #expect(try Data(contentsOf: base.file) == model.bytes)
            #expect(try bases.installed == [base])
            #expect(try bases.model(named: "mine").labels == ["A", "B", "C"])
            // Nothing needs the source now, and a second installation keeps the installed file.
            #expect(try await BaseModelInstaller(into: bases).install(from: file) == base)
            try FileManager.default.removeItem(at: file)
            #expect(try bases.model(named: "mine").labels == ["A", "B", "C"])
            try bases.remove("mine")
            #expect(try bases.installed.isEmpty && files(of: bases).isEmpty)
            #expect(throws: BaseModelError.notInstalled(name: "mine", folder: bases.folder.path)) {
                try bases.remove("mine")
            }
        }
    }

    @Test("An ONNX file is converted; with the settings of the catalog if the catalog has the file")
    func conversion() async throws {
        try await withBases { bases, folder in
            let plain = try await BaseModelInstaller(into: bases).install(from: onnxFile, named: "plain")
            #expect(plain.digest != plain.sourceDigest)
            #expect(try bases.model(named: "plain").preprocessing.mean == [123.675, 116.28, 103.53])
            let known = folder.appending(path: "known.onnx")
            let model = folder.appending(path: "x.imprint")
            try SmallModel(seed: 1).bytes.write(to: model)
            try ModelFile(contentsOf: model).writeONNX(to: known)
            let digest = try FileDigest.sha256(of: known)
            let small = try catalog(source: #"{"kind": "file", "path": "/missing"}"#, sha256: digest)
            let base = try await BaseModelInstaller(into: bases, catalog: small).install(
                from: known, acceptsLicense: true)
            #expect(base.name == "small" && base.license == "Test Licence" && base.isLicenseAccepted)
            let preprocessing = try bases.model(named: "small").preprocessing
            #expect(preprocessing.mean == [96, 128, 160] && preprocessing.width == 16)
            #expect(BaseModelInstaller(into: bases, catalog: small).entryToAccept("small") == nil)
        }
    }

    @Test("A base model of the catalog needs its licence accepted, once")
    func license() async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            let file = folder.appending(path: "x.imprint")
            try model.bytes.write(to: file)
            let installer = BaseModelInstaller(
                into: bases,
                catalog: try catalog(source: #"{"kind": "file", "path": "\#(file.path)"}"#, sha256: model.sha256))
            #expect(installer.entryToAccept("small")?.license.name == "Test Licence")
            await #expect(throws: BaseInstallationError.licenseNotAccepted(name: "small", license: "A file states it."))
            {
                try await installer.install("small")
            }
            #expect(files(of: bases).isEmpty)
            let base = try await installer.install("small", acceptsLicense: true)
            #expect(base.license == "Test Licence" && base.isLicenseAccepted)
            #expect(installer.entryToAccept("small") == nil)
            try flipBit(in: base.file)
            #expect(try await installer.install("small").damage == nil)
            #expect(try bases.installed.map(\.damage) == [nil])
            await #expect(throws: BaseInstallationError.unknownName(name: "other", known: ["small"])) {
                try await installer.install("other", acceptsLicense: true)
            }
            // After a removal, the licence is shown again.
            try bases.remove("small")
            #expect(installer.entryToAccept("small")?.license.name == "Test Licence")
        }
    }

    @Test(
        "A damaged base model is reported and not loaded, and a new installation fixes it",
        arguments: [
            "a flipped bit", "no model file", "a folder", "an invalid record", "a path in the record",
            "the record of another name",
        ])
    func damage(_ kind: String) async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            let file = folder.appending(path: "mine.imprint")
            try model.bytes.write(to: file)
            let installer = BaseModelInstaller(into: bases)
            let base = try await installer.install(from: file)
            let record = bases.folder.appending(path: "mine.json")
            switch kind {
            case "a flipped bit": try flipBit(in: base.file)
            case "no model file": try FileManager.default.removeItem(at: base.file)
            case "a folder":
                try FileManager.default.removeItem(at: record)
                try FileManager.default.createDirectory(at: record, withIntermediateDirectories: false)
            case "a path in the record":
                let text = try String(contentsOf: record, encoding: .utf8)
                try Data(text.replacing(#""mine@"#, with: #""../models/mine@"#).utf8).write(to: record)
            case "an invalid record": try Data("{}".utf8).write(to: record)
            default:
                let text = try String(contentsOf: record, encoding: .utf8)
                try Data(text.replacing(#""mine""#, with: #""other""#).utf8).write(to: record)
            }
            let installed = try bases.installed
            let found = try #require(installed.first)
            let damage = try #require(found.damage)
            let isFileDamaged = ["a flipped bit", "no model file"].contains(kind)
            #expect(found.name == "mine" && found.file == (isFileDamaged ? base.file : record))
            #expect(throws: BaseModelError.damaged(name: "mine", file: found.file.path, reason: damage)) {
                try bases.model(named: "mine")
            }
            #expect(try bases.first == nil)
            if kind == "a folder" { try bases.remove("mine") }
            try await installer.install(from: file)
            #expect(try bases.installed == [base])
            #expect(try bases.model(named: "mine").digest != nil)
        }
    }

    @Test("A wrong digest, an invalid file and an invalid name install nothing")
    func refusals() async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            let file = folder.appending(path: "my model.imprint")
            try model.bytes.write(to: file)
            let installer = BaseModelInstaller(into: bases)
            let zeros = String(repeating: "0", count: 64)
            await #expect(
                throws: BaseInstallationError.wrongDigest(source: file.path, found: model.sha256, expected: zeros)
            ) {
                try await installer.install(from: file, named: "mine", sha256: zeros)
            }
            await #expect(throws: BaseInstallationError.invalidDigest(found: "12")) {
                try await installer.install(from: file, named: "mine", sha256: "12")
            }
            for name in [nil, "", "../x", ".x", "a/b", String(repeating: "x", count: 65)] {
                await #expect(throws: BaseInstallationError.invalidName(name ?? "my model")) {
                    try await installer.install(from: file, named: name)
                }
            }
            await #expect(throws: FileError.self) {
                try await installer.install(from: folder.appending(path: "missing.onnx"))
            }
            await #expect(throws: ImportError.self) {
                try await installer.install(from: file, named: "mine", architecture: "efficientnet-lite0")
            }
            for bytes in [model.bytes.dropLast(), Data("no model".utf8)] {
                let broken = folder.appending(path: "broken.imprint")
                try bytes.write(to: broken)
                await #expect(throws: (any Error).self) { try await installer.install(from: broken) }
            }
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test("A name of another base model is not replaced")
    func taken() async throws {
        try await withBases { bases, folder in
            let installer = BaseModelInstaller(into: bases)
            let (first, second) = (folder.appending(path: "a.imprint"), folder.appending(path: "b.imprint"))
            try SmallModel(seed: 1).bytes.write(to: first)
            try SmallModel(seed: 2).bytes.write(to: second)
            try await installer.install(from: first, named: "x")
            await #expect(throws: BaseInstallationError.nameTaken(name: "x", source: first.path)) {
                try await installer.install(from: second, named: "x")
            }
            #expect(try bases.model(named: "x").digest == ModelFile(contentsOf: first).digest)
        }
    }

    @Test("Installations and removals at the same time leave only intact base models")
    func concurrency() async throws {
        let models = try (1...3).map { try SmallModel(seed: $0) }
        try await withBases { bases, folder in
            for (index, model) in models.enumerated() {
                try model.bytes.write(to: folder.appending(path: "m\(index).imprint"))
            }
            await withTaskGroup(of: Void.self) { group in
                for task in 0..<12 {
                    group.addTask {
                        let name = "m\(task % 3)"
                        if task % 4 == 3 {
                            try? bases.remove(name)
                        } else {
                            _ = try? await BaseModelInstaller(into: bases).install(
                                from: folder.appending(path: "\(name).imprint"))
                        }
                        for base in (try? bases.installed) ?? [] { _ = base.name }
                    }
                }
            }
            for base in try bases.installed { #expect(base.damage == nil) }
            #expect(!files(of: bases).contains { $0.contains("partial") })
            // After the removals, everything can still be installed.
            for index in 0..<3 {
                try await BaseModelInstaller(into: bases).install(from: folder.appending(path: "m\(index).imprint"))
            }
            #expect(try bases.installed.map(\.digest) == models.map(\.sha256))
        }
    }
}
