internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintServe

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a model over HTTP, with the Open Inference Protocol of KServe and Triton.",
        discussion: """
            Clients send encoded pictures, pixels or tensors. The server runs the network on a whole batch of images that arrive at the same \
            time (dynamic batching). It listens on this machine only, unless you choose another address with --host; clients then need a token. Ctrl-C or SIGTERM ends \
            the server after the requests in progress.

            Examples:
              imprint serve pets.imprint
              curl --data-binary @photo.jpg -H 'Content-Type: image/jpeg' http://127.0.0.1:8000/v2/models/pets/infer
              imprint serve pets.imprint --max-batch 16 --max-delay 2
              imprint serve pets.imprint --host 0.0.0.0 --token-file token.txt
            """)

    @Argument(help: "The model file, or the name of an installed model.")
    var model: String

    @Option(
        help: ArgumentHelp(
            "The name of the model in paths. (default: the name of the installed model, or the file name without its extension)"
        ))
    var name: String?

    @Option(help: ArgumentHelp("The IPv4 or IPv6 address of this machine to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: "The port; 0 for a free one.")
    var port = 8000

    @Option(
        help: ArgumentHelp(
            "A file with the token that requests need. (default: none on this machine only; for other addresses, a new token, which "
                + "is printed)", valueName: "file"))
    var tokenFile: String?

    @Option(help: "The maximum batch size.")
    var maxBatch = 8

    @Option(
        help: ArgumentHelp(
            "The maximum time that an image waits for its batch to fill, in milliseconds.", valueName: "ms"))
    var maxDelay = 0.0

    @Option(
        help: ArgumentHelp(
            "The maximum number of images in the queue; further requests get status 503.", valueName: "images"))
    var maxQueue = 256

    @Option(help: ArgumentHelp("The maximum size of a request, in MB.", valueName: "MB"))
    var maxRequestSize = 32

    @Option(help: "The maximum number of open connections.")
    var maxConnections = 256

    @OptionGroup var classifierOptions: ClassifierOptions

    @OptionGroup var common: CommonOptions

    mutating func validate() throws {
        try requirePaths([model] + [tokenFile].compactMap { $0 })
        try require(port, "--port", in: 0...65535)
        try require(maxBatch, "--max-batch", in: 1...1024)
        try require(maxDelay, "--max-delay", in: 0...10000)
        try require(maxQueue, "--max-queue", in: 1...65536)
        try require(maxRequestSize, "--max-request-size", in: 1...2048)
        try require(maxConnections, "--max-connections", in: 1...16384)
        guard let address = NetworkAddress.address(host) else {
            throw ValidationError(
                "--host: \(shown(host)) is not an IP address. Expected localhost or an address of this machine, such as 127.0.0.1, or "
                    + "0.0.0.0 for all of its addresses.")
        }
        host = address
        if let name, name.isEmpty || name.contains("/") {
            throw ValidationError("--name is \(shown(name).debugDescription), expected a name without /.")
        }
    }

    func run() async throws {
        let name = name ?? defaultName
        var options = ServeOptions(modelName: name, version: ImprintCommand.configuration.version)
        (options.host, options.port) = (host, port)
        (options.maximumBatchSize, options.queueCapacity) = (maxBatch, maxQueue)
        options.maximumDelay = .seconds(maxDelay / 1000)
        options.maximumRequestByteCount = maxRequestSize << 20
        options.maximumConnectionCount = maxConnections
        let isNewToken = tokenFile == nil && !NetworkAddress.isLoopback(host)
        options.token = try tokenFile.map(token) ?? (isNewToken ? randomToken(words: 4) : nil)
        let classifier = try classifierOptions.classifier(model, threads: common.threadCount)
        // Leaves all threads of Swift concurrency free, because starting and stopping block.
        let server = try await onDedicatedThread { [options] in try InferenceServer(classifier, options: options) }
        let interrupt = Interrupt([SIGINT, SIGTERM, SIGHUP], saves: false)
        interrupt.begin()
        defer { interrupt.end() }
        try show(server, name, token: isNewToken ? options.token : nil)
        while !Interrupt.isRequested { try await Task.sleep(for: .milliseconds(100)) }
        Terminal.note("Finishing the requests in progress …")
        await finish(server)
    }

    /// The name of an installed model, or that of a file without its extension.
    private var defaultName: String {
        let isFile = FileManager.default.fileExists(atPath: model)
        return isFile ? URL(filePath: model).deletingPathExtension().lastPathComponent : model
    }

    private func finish(_ server: InferenceServer) async {
        // The closure does not throw.
        _ = try? await onDedicatedThread { server.stop() }
    }

    private func show(_ server: InferenceServer, _ name: String, token: String?) throws {
        guard !common.json else {
            return try Terminal.emit(ServeLine(url: server.url, model: name, token: token))
        }
        try Terminal.show(server.url)
        if let token { try Terminal.show("token \(token)") }
        if !NetworkAddress.isLoopback(host) {
            Terminal.warn(
                "Warning: requests and the token are not encrypted. Use a trusted network, or a proxy with TLS in front of the server."
            )
        }
        Terminal.note("Serving \(shown(name)). Ctrl-C ends the server.")
    }

    /// Reads the token in a file.
    private func token(_ path: String) throws -> String {
        let limit = 1 << 16
        guard let bytes = try contents(ofFileOrPipe: path, limit: limit) else {
            throw InvalidContent(
                description: "--token-file: \(shown(path)) has more than \(limit) bytes, expected a shorter token.")
        }
        let token = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard token.utf8.count >= 16, token.utf8.allSatisfy({ (33...126).contains($0) }) else {
            throw InvalidContent(
                description:
                    "--token-file: \(shown(path)) does not have a token, expected at least 16 printable ASCII characters without spaces. "
                    + "openssl rand -hex 32 prints one.")
        }
        return token
    }
}

private struct ServeLine: Encodable {
    let event = "serving"
    let url: String
    let model: String
    /// The new token; nil without one, or if it comes from a file.
    let token: String?
}
