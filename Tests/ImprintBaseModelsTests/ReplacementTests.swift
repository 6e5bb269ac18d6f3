import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintModel
import TestSupport
import Testing

@testable import ImprintTraining

/// Records of base models, and installations that replace one.
@Suite struct ReplacementTests {
    /// Installs the base model "mine" from a file `mine.imprint`, and returns that file.
    private func install(_ bases: BaseModels, _ folder: URL) async throws -> URL {
        let file = folder.appending(path: "mine.imprint")
        try SmallModel(seed: 1).bytes.write(to: file)
        try await BaseModelInstaller(into: bases).install(from: file)
        return file
    }

    /// Changes the record of "mine".
    private func changeRecord(_ bases: BaseModels, _ change: (inout [String: Any]) -> Void) throws {
        let file = bases.recordFile("mine")
        var object = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        change(&object)
        try JSONSerialization.data(withJSONObject: object).write(to: file)
    }

    @Test("A base model of record format 1 can be used, and a new installation replaces its files")
    func formatOne() async throws {
        try await withBases { bases, folder in
            let file = try await install(bases, folder)
            let base = try #require(bases.installed(named: "mine"))
            let old = bases.folder.appending(path: "mine.imprint")
            try FileManager.default.moveItem(at: base.file, to: old)
            try changeRecord(bases) { object in
                object["format"] = 1
                object["file"] = nil
            }
            let found = try #require(try bases.first)
            #expect(found.file == old && found.problem == nil && found.architecture == nil)
            #expect(try bases.model(named: "mine").labels == ["A", "B", "C"])
            try flipBit(in: old)
            try await BaseModelInstaller(into: bases).install(from: file)
            #expect(files(of: bases) == ["mine.json", base.file.lastPathComponent])
        }
    }

    @Test("Until the new record is in place, the old model stays in use; leftover files are removed later")
    func leftovers() async throws {
        try await withBases { bases, folder in
            let file = try await install(bases, folder)
            let base = try #require(bases.installed(named: "mine"))
            // A process that was killed before it renamed the record leaves its model file.
            for name in ["mine@0123456789abcdef.imprint", "other@0123456789abcdef.imprint"] {
                try Data("new".utf8).write(to: bases.folder.appending(path: name))
            }
            try Data("mine".utf8).write(to: bases.folder.appending(path: "own.imprint"))
            #expect(try bases.installed == [base])
            try await BaseModelInstaller(into: bases).install(from: file, named: "copy")
            let copy = try #require(bases.installed(named: "copy"))
            // A file that Imprint did not write stays.
            #expect(
                Set(files(of: bases)) == [
                    "copy.json", copy.file.lastPathComponent, "mine.json", base.file.lastPathComponent, "own.imprint",
                ])
            #expect(try bases.installed == [copy, base])
        }
    }

    @Test("A record of a newer format is no damage, and is neither loaded nor replaced")
    func newerRecord() async throws {
        try await withBases { bases, folder in
            let file = try await install(bases, folder)
            try changeRecord(bases) { object in
                object["format"] = 3
                object["name"] = nil
            }
            let path = bases.recordFile("mine").path
            let base = try #require(bases.installed(named: "mine"))
            #expect(base.problem == .newerRecord && base.damage == nil)
            #expect(try bases.first == nil)
            let error = BaseModelError.newerRecord(name: "mine", file: path)
            #expect("\(error)".contains("needs a newer version of Imprint"))
            #expect(throws: error) { try bases.model(named: "mine") }
            await #expect(throws: error) { try await BaseModelInstaller(into: bases).install(from: file) }
            // Its model file stays when another base model is installed.
            try await BaseModelInstaller(into: bases).install(from: file, named: "copy")
            #expect(files(of: bases).filter { $0.hasPrefix("mine") }.count == 2)
            #expect(try bases.first?.name == "copy")
            try bases.remove("mine")
            #expect(!files(of: bases).contains { $0.hasPrefix("mine") })
        }
    }

    @Test("A record that is a device is damaged, and is not read") func recordDevice() async throws {
        try await withBases { bases, folder in
            _ = try await install(bases, folder)
            let record = bases.recordFile("mine")
            try FileManager.default.removeItem(at: record)
            // Stands for /dev/zero, which would fill the memory if it were read.
            try FileManager.default.createSymbolicLink(atPath: record.path, withDestinationPath: "/dev/null")
            let damage = try #require(bases.installed(named: "mine")?.damage)
            #expect(damage.hasPrefix("its record cannot be read: it is a device, expected a regular file"))
        }
    }

    @Test("Another architecture converts an installed file again, and the same one keeps it")
    func architecture() async throws {
        try await withBases { bases, folder in
            let file = try await install(bases, folder)
            let installer = BaseModelInstaller(into: bases)
            try changeRecord(bases) { $0["architecture"] = "resnet18" }
            #expect(try await installer.install(from: file, architecture: "resnet18").architecture == "resnet18")
            // A model file contains its architecture, so the conversion that is tried is an error.
            await #expect(throws: (any Error).self) {
                try await installer.install(from: file, architecture: "resnet34")
            }
            #expect(bases.installed(named: "mine")?.architecture == "resnet18")
        }
    }

    @Test("A file or a URL of the catalog needs the licence of its entry accepted, under each name")
    func license() async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            let file = folder.appending(path: "x.imprint")
            try model.bytes.write(to: file)
            let link = try #require(URL(string: "https://example.org/x.imprint"))
            let installer = BaseModelInstaller(
                into: bases,
                catalog: try catalog(
                    source: #"{"kind": "https", "url": "\#(link.absoluteString)"}"#, sha256: model.sha256))
            let zeros = String(repeating: "0", count: 64)
            #expect(try installer.entryToAccept(from: link, sha256: zeros)?.name == "small")
            let error = BaseInstallationError.licenseNotAccepted(name: "small", license: "A file states it.")
            await #expect(throws: error) { try await installer.install(from: link, sha256: zeros) }
            for name in ["small", "other"] {
                #expect(try installer.entryToAccept(from: file, named: name)?.name == "small")
                await #expect(throws: error) { try await installer.install(from: file, named: name) }
                await #expect(throws: error) {
                    try await installer.install(from: file, named: name, architecture: "resnet18")
                }
                let base = try await installer.install(from: file, named: name, acceptsLicense: true)
                #expect(base.license == "Test Licence" && base.isLicenseAccepted)
                #expect(try installer.entryToAccept(from: file, named: name) == nil)
                #expect(try await installer.install(from: file, named: name) == base)
            }
        }
    }
}
