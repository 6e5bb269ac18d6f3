import Foundation
import PackagePlugin

/// Makes a Swift type of every model file among a target's resources; docs/typed-models.md says how to use it.
@main
struct ImprintModels: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let models = (target as? any SourceModuleTarget)?.sourceFiles.filter { $0.url.pathExtension == "imprint" } ?? []
        let resources = models.filter { $0.type == .resource }
        for file in models where file.type != .resource {
            Diagnostics.error(
                "\(file.url.path): is no resource of the target \(target.name); add "
                    + "resources: [.copy(\"\(file.url.lastPathComponent)\")] to it in Package.swift")
        }
        if models.isEmpty {
            Diagnostics.warning(
                "the target \(target.name) has no file that ends in .imprint, of which ImprintModels would make a type; "
                    + "put one beside its sources, and name it in its resources")
        }
        let generator = try context.tool(named: "ImprintModelGenerator").url
        let files = resources.map(\.url)
        return files.enumerated().map { place, file in
            // Logo.imprint.swift: a target may have a Logo.swift of its own.
            let output = context.pluginWorkDirectoryURL.appending(path: "\(file.lastPathComponent).swift")
            // With the files before it, whose types must have other names.
            return .buildCommand(
                displayName: "Making a type of \(file.lastPathComponent)", executable: generator,
                arguments: [file.path, output.path] + files[..<place].map(\.path), inputFiles: [file],
                outputFiles: [output])
        }
    }
}
