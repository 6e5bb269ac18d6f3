import Foundation
import Imprint
import ImprintModel
import ImprintTraining
import TestSupport
import Testing

@testable import ImprintModelGenerator

@Suite struct TypedModelSourceTests {
    @Test("The generated source equals the stored one; review changes before you update it")
    func golden() throws {
        let golden = packageFolder.appending(path: "Tests/ImprintModelGeneratorTests/Fixtures/TwoCircles.swift.txt")
        let source = TypedModelSource(
            fileName: "TwoCircles.imprint", labels: ["Other", "TwoCircles", "3 circles", "class"])
        #expect(source.text == (try String(contentsOf: golden, encoding: .utf8)))
    }

    @Test("The guide to typed models shows the generated source without its comments")
    func documentedSource() throws {
        let page = try String(
            contentsOf: packageFolder.appending(path: "docs/how-to/typed-models.md"), encoding: .utf8)
        let source = TypedModelSource(fileName: "Logo.imprint", labels: ["Logo", "NoLogo"])
        let lines = source.text.components(separatedBy: "\n").filter { line in
            !line.hasPrefix("import ") && !line.drop { $0 == " " }.hasPrefix("//")
        }
        let code = lines.joined(separator: "\n").trimmingCharacters(in: .newlines)
        #expect(page.contains("```swift\n\(code)\n```"), "\(code)")
    }

    @Test(
        "Texts from a file cannot escape their literals and comments",
        arguments: [
            ("a\"b", "a\\\"b"), ("\\(print())", "\\\\(print())"), ("two\nlines\r", "two\\u{a}lines\\u{d}"), ("é", "é"),
            ("e\u{301}", "e\u{301}"),
            ("\u{2028}\u{202E}\0", "\\u{2028}\\u{202e}\\u{0}"), ("a\u{A0}b c", "a\\u{a0}b c"), ("犬🐶", "犬🐶"),
        ])
    func escaped(text: String, literal: String) {
        #expect(Array(TypedModelSource.escaped(text).utf8) == Array(literal.utf8))
    }

    /// Unusual labels.
    private static let unusual = [
        "Other", "class", "Class", "self", "Self", "init", "Type", "Protocol", "All cases", "raw value", "hash value",
        "hash", "none", "some", "default", "String", "3D", "7", "_", "", " ", "\0", "a\"b", "\\(fatalError())", "*/ }",
        "two\nlines", "\u{202E}abc\u{2028}", "犬", "🐶", "👨‍👩‍👧", "C++", "C#", "c", "é", "١٢", "מודל", "async", "await",
        "Any", "any", "nil", "true", "is", "value", "label", "〡",
    ]

    @Test(
        "The generated source compiles without warnings, with all compiler settings of the user's module",
        arguments: [
            ["-swift-version", "6"],
            ["-swift-version", "6", "-enable-upcoming-feature", "InternalImportsByDefault"],
            [
                "-swift-version", "6", "-enable-upcoming-feature", "InternalImportsByDefault",
                "-enable-upcoming-feature",
                "MemberImportVisibility", "-enable-upcoming-feature", "ExistentialAny", "-enable-upcoming-feature",
                "NonisolatedNonsendingByDefault", "-enable-upcoming-feature", "InferIsolatedConformances",
            ],
            ["-swift-version", "6", "-default-isolation", "MainActor"],
            ["-swift-version", "5", "-strict-concurrency=complete"],
        ])
    func compiles(settings: [String]) throws {
        try withTemporaryFolder { folder in
            let thousand = (0..<1000).map { "label \($0)" }
            let models = [
                ("TwoCircles", ["Other", "TwoCircles"]), ("a\"b \\(x)\n", Self.unusual), ("Imprint", thousand),
                ("String", ["a"]),
            ]
            var files = try models.enumerated().map { index, model in
                let file = folder.appending(path: "\(index).swift")
                let source = TypedModelSource(fileName: "\(model.0).imprint", labels: model.1)
                try source.text.write(to: file, atomically: true, encoding: .utf8)
                return file.path
            }
            // The code that SwiftPM generates for a module with resources, and a use of the type.
            files.append(folder.appending(path: "use.swift").path)
            try """
            import Foundation
            import Imprint

            extension Foundation.Bundle { static nonisolated let module = Bundle.main }

            nonisolated func describe(_ model: TwoCircles, _ photo: URL) async throws -> Swift.String {
                switch try await model.best(in: .file(photo))?.label {
                case .other: "other"
                case .twoCircles: "two circles"
                case nil: "none"
                }
            }
            """.write(toFile: files[files.count - 1], atomically: true, encoding: .utf8)
            let result = try run(
                URL(filePath: "/usr/bin/env"),
                ["swiftc", "-typecheck", "-warnings-as-errors", "-module-name", "App"] + settings + moduleSearchPaths()
                    + files)
            #expect(result.status == 0, "\(result.errors.prefix(4000))")
        }
    }

    /// Returns compiler arguments to find the modules that were built with these tests.
    private func moduleSearchPaths() throws -> [String] {
        // The path is SCRATCH/TRIPLE/CONFIGURATION/TESTS. C modules have maps there or in their sources; the maps of Swift modules for C are
        // not needed.
        let products = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let scratch = products.deletingLastPathComponent().deletingLastPathComponent()
        var maps: [URL] = []
        for folder in [products, scratch.appending(path: "checkouts"), packageFolder.appending(path: "Sources")] {
            let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
            for case let file as URL in files
            where file.lastPathComponent == "module.modulemap" && !file.path.contains(".build/include/") {
                maps.append(file)
            }
        }
        return ["-I", products.appending(path: "Modules").path]
            + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0.path)"] }
    }

    @Test("The program writes the source, and reports errors")
    func program() throws {
        try withTemporaryFolder { folder in
            let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
                .appending(path: "ImprintModelGenerator")
            let (model, output) = (folder.appending(path: "Logo.imprint"), folder.appending(path: "Logo.swift"))
            try makeModel(labels: ["Logo", "Other"]).write(to: model)
            let first = try run(program, [model.path, output.path])
            #expect(first.status == 0 && first.output.isEmpty && first.errors.isEmpty, "\(first.errors)")
            #expect(
                try String(contentsOf: output, encoding: .utf8)
                    == TypedModelSource(fileName: "Logo.imprint", labels: ["Logo", "Other"]).text)

            try Data("hello".utf8).write(to: model)
            let damaged = try run(program, [model.path, output.path])
            #expect(
                damaged.status == 1
                    && damaged.errors.hasPrefix("error: \(model.path): the file is not a model file: it has 5 bytes"))
            try makeModel(labels: ["Logo", "Other"]).write(to: model)
            let unwritable = try run(program, [model.path, folder.appending(path: "none/Logo.swift").path])
            #expect(unwritable.status == 1 && unwritable.errors.contains("cannot be written"))
            let other = folder.appending(path: "other/lo-go.imprint").path
            #expect(try run(program, [model.path, output.path, other]).status == 0)
            let namesake = folder.appending(path: "other/logo.imprint").path
            let same = try run(program, [model.path, output.path, other, namesake])
            #expect(same.status == 1)
            #expect(
                same.errors
                    == "error: \(model.path): its type would be called Logo, like the type of \(namesake). Rename one of the two "
                    + "files.\n")
            let wrongUse = try run(program, [model.path])
            #expect(wrongUse.status == 64 && wrongUse.errors.contains("MODEL.imprint OUTPUT.swift"))
        }
    }
}
