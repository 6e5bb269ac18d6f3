import Foundation
import PackagePlugin

/// Generates a Swift type for every model file among a target's resources; docs/how-to/typed-models.md explains its use.
@main
struct ImprintModels: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let models = (target as? any SourceModuleTarget)?.sourceFiles.filter { $0.url.pathExtension == "imprint" } ?? []
        let resources = models.filter { $0.type == .resource }
        for file in models where file.type != .resource {
            Diagnostics.error(
                "\(file.url.path): is not a resource of the target \(target.name). Add "
                    + "resources: [.copy(\"\(file.url.lastPathComponent)\")] to the target in Package.swift")
        }
        if models.isEmpty {
            Diagnostics.warning(
                "the target \(target.name) has no file that ends in .imprint, so ImprintModels generates no types. "
                    + "Add a model file to the target and list it in its resources")
        }
        let generator = try context.tool(named: "ImprintModelGenerator").url
        let files = resources.map(\.url)
        return files.enumerated().map { index, file in
            // Logo.imprint.swift, because the target may contain a Logo.swift.
            let output = context.pluginWorkDirectoryURL.appending(path: "\(file.lastPathComponent).swift")
            // The generator compares the name of the type with the type names of the preceding files.
            return .buildCommand(
                displayName: "Generating a type for \(file.lastPathComponent)", executable: generator,
                arguments: [file.path, output.path] + files[..<index].map(\.path), inputFiles: [file],
                outputFiles: [output])
        }
    }
}
