internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintLive
internal import ImprintModel
internal import ImprintStudio

struct StudioCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "studio",
        abstract: "Serve a web page on this machine to run a model on the camera, and to train it with examples.",
        discussion: """
            The page classifies the camera image up to ten times a second, saves photos with their labels, and trains from examples while you watch. \
            Without a model file it trains a new model. You can also draw boxes on photos, and train a detector from them. Only browsers \
            that open the printed address have access; no photo leaves the machine, except to phones that you let in with --share. Ctrl-C \
            ends the studio.

            Examples:
              imprint studio
              imprint studio pets.imprint --personalization me.imprint
              imprint studio --boxes boxes --port 9000
              imprint studio --share
            """)

    @Argument(help: "The model file; without one, the page trains a new model.")
    var model: String?

    @Option(help: "The port of the page. (default: \(Studio.defaultPort), or the next free one)")
    var port: Int?

    @Option(
        help: ArgumentHelp(
            "The folder of the photos with boxes that you draw in the page; it is created with the first photo. (default: studio beside "
                + "the folder of base models)", valueName: "folder"))
    var boxes: String?

    @Flag(
        help: ArgumentHelp(
            "Also serve the page to phones on the local network, encrypted; each phone needs a QR code, which works once."
        ))
    var share = false

    @Option(
        help: ArgumentHelp(
            "The IPv4 address of this machine that phones use. (default: the address in the private network)",
            valueName: "address"))
    var shareAddress: String?

    @OptionGroup var classifierOptions: ClassifierOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, boxes].compactMap { $0 })
        try require(port ?? 1, "--port", in: 1...65535)
        if let shareAddress {
            guard share else {
                throw ValidationError(
                    "--share-address needs --share, which is missing. Add --share, or leave out --share-address.")
            }
            guard LocalNetwork.isAddress(shareAddress) else {
                throw ValidationError(
                    "--share-address: \(shown(shareAddress)) is not an IPv4 address. Name an address of this machine, such as "
                        + "192.168.1.5.")
            }
        }
        let needsModel =
            classifierOptions.personalization != nil || classifierOptions.mirror
            || classifierOptions.precisionOptions.precision != nil
        if model == nil && needsModel {
            throw ValidationError("--personalization, --mirror and --precision need a model. Name a model file.")
        }
    }

    func run() async throws {
        let classifier = try model.map {
            try classifierOptions.classifier($0, threads: common.threadCount)
        }
        let name = model.map {
            ([$0] + [classifierOptions.personalization].compactMap(\.self)).map {
                URL(filePath: $0).deletingPathExtension().lastPathComponent
            }.joined(separator: " with ")
        }
        let studio = try await Studio(
            classifier, name: name, port: port, threads: common.threadCount, boxes: boxes.map { URL(filePath: $0) })
        let sharing = try await share(studio)
        let interrupt = Interrupt([SIGINT, SIGTERM, SIGHUP], saves: false)
        interrupt.begin()
        defer { interrupt.end() }
        if common.json {
            try Terminal.emit(
                ServingLine(
                    url: studio.url.absoluteString, sharedAddress: sharing?.address.absoluteString,
                    fingerprint: sharing?.fingerprint))
        } else {
            try Terminal.show(studio.url.absoluteString)
            Terminal.note("Open this address in a browser on this machine. Ctrl-C ends the studio.")
            try sharing?.show()
        }
        while !Interrupt.isRequested {
            if let failure = studio.failure { throw failure }
            try sharing?.update()
            try await Task.sleep(for: .milliseconds(100))
        }
        await studio.stop()
    }

    /// Shares the studio if `--share` is set.
    private func share(_ studio: Studio) async throws -> SharedStudio? {
        guard share else { return nil }
        do {
            return SharedStudio(
                try studio.share(on: try shareAddress ?? LocalNetwork.address()), isJSON: common.json)
        } catch {
            await studio.stop()
            throw error
        }
    }
}

private struct ServingLine: Encodable {
    let event = "serving"
    let url: String
    let sharedAddress: String?
    let fingerprint: String?
}
