import Foundation
import TestSupport
import Testing

@Suite struct PluginTests {
    /// Writes a package with one target that uses only the plugin, so that it builds in seconds.
    private func writePackage(in folder: URL, resources: String) throws {
        let sources = folder.appending(path: "Sources/App")
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        try Data("print(1)\n".utf8).write(to: sources.appending(path: "main.swift"))
        // A target may contain extensions of the generated type in a file of this name.
        try Data("let name = \"Logo\"\n".utf8).write(to: sources.appending(path: "Logo.swift"))
        try """
        // swift-tools-version: 6.2
        import PackageDescription
        let package = Package(
            name: "app", platforms: [.macOS(.v15)],
            dependencies: [.package(name: "imprint", path: "\(packageFolder.path)")],
            targets: [
                .executableTarget(
                    name: "App", resources: [\(resources)], plugins: [.plugin(name: "ImprintModels", package: "imprint")])
            ])
        """.write(to: folder.appending(path: "Package.swift"), atomically: true, encoding: .utf8)
    }

    @Test("The build reports damaged models, models that are not resources, and name collisions")
    func diagnostics() throws {
        try withTemporaryFolder { folder in
            func build(resources: String) throws -> (status: Int32, text: String) {
                try writePackage(in: folder, resources: resources)
                let result = try swift("build", "--package-path", folder.path)
                return (result.status, result.output + result.errors)
            }
            let none = try build(resources: "")
            #expect(
                none.status == 0 && none.text.contains("warning: the target App has no file that ends in .imprint"),
                "\(none)")

            let model = folder.appending(path: "Sources/App/Logo.imprint")
            try FileManager.default.copyItem(atPath: Examples.model, toPath: model.path)
            let undeclared = try build(resources: "")
            #expect(undeclared.status != 0)
            #expect(
                undeclared.text.contains(
                    "Logo.imprint: is not a resource of the target App. Add resources: [.copy(\"Logo.imprint\")]"),
                "\(undeclared)")

            try Data(contentsOf: model).dropLast().write(to: model)
            let damaged = try build(resources: ".copy(\"Logo.imprint\")")
            #expect(damaged.status != 0)
            #expect(damaged.text.contains("Logo.imprint: the file was cut off: it has"), "\(damaged)")

            let other = folder.appending(path: "Sources/App/logo.imprint")
            for file in [model, other] {
                try? FileManager.default.removeItem(at: file)
                try FileManager.default.copyItem(atPath: Examples.model, toPath: file.path)
            }
            let namesakes = try build(resources: ".copy(\"Logo.imprint\"), .copy(\"logo.imprint\")")
            #expect(namesakes.status != 0)
            let errors = namesakes.text.split(separator: "\n").filter { $0.contains("error: /") }
            #expect(errors.count == 1, "\(namesakes)")
            for text in [
                model.path, other.path, "its type would be called Logo", "Rename one of the two files",
            ] {
                #expect(errors.first?.contains(text) == true, "\(namesakes)")
            }
        }
    }
}
