internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintModel
internal import ImprintStudio

struct StudioCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "studio",
        abstract: "Look through the camera with a model, and teach it, in a page on this machine.",
        discussion: """
            The page shows once a second what the model sees, keeps pictures with their labels, and learns from examples while you watch. \
            Without a model it trains one. It is open to browsers that are given the printed address, and to nobody else; no photo leaves \
            the machine. Ctrl-C ends it.
            """)

    @Argument(help: "The weights file; without one, a model is trained in the page.")
    var model: String?

    @Option(help: "The port of the page. (default: \(Studio.defaultPort), or the next free one)")
    var port: Int?

    @OptionGroup var classifierOptions: ClassifierOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model].compactMap { $0 })
        try require(port ?? 1, "--port", in: 1...65535)
        if model == nil && (classifierOptions.personalization != nil || classifierOptions.mirror) {
            throw ValidationError("--personalization and --mirror are for a model; name it.")
        }
    }

    func run() async throws {
        let classifier = try model.map { try classifierOptions.classifier($0, threads: common.threadCount) }
        let name = model.map {
            ([$0] + [classifierOptions.personalization].compactMap(\.self)).map {
                URL(filePath: $0).deletingPathExtension().lastPathComponent
            }.joined(separator: " with ")
        }
        let studio = try await Studio(classifier, name: name, port: port, threads: common.threadCount)
        let interrupt = Interrupt([SIGINT, SIGTERM, SIGHUP])
        interrupt.begin()
        defer { interrupt.end() }
        if common.json {
            try Terminal.emit(ServingLine(url: studio.url.absoluteString))
        } else {
            try Terminal.show(studio.url.absoluteString)
            Terminal.note("Open this address in a browser on this machine. Ctrl-C ends the studio.")
        }
        while !Interrupt.isRequested {
            if let failure = studio.failure { throw failure }
            try await Task.sleep(for: .milliseconds(100))
        }
        await studio.stop()
    }
}

private struct ServingLine: Encodable {
    let event = "serving"
    let url: String
}
