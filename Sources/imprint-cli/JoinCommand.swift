internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintFleet
internal import ImprintImages

struct JoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Train a model together with other devices, through a Flower SuperLink (federated learning).",
        discussion: """
            The device answers the server until Ctrl-C. In each round, it trains the head of the model on its photos, and sends only the \
            change to the head and the number of photos. Photos and features never leave the device.

            Examples:
              imprint join https://fleet.example:8000 --model mine.imprint --photos my-photos --key device.pem
              imprint join http://127.0.0.1:8000 --model mine.imprint --photos my-photos --clip 1 --noise 2
            """)

    @Argument(help: ArgumentHelp("The http or https URL of the SuperLink.", valueName: "url"))
    var server: String

    @Option(help: ArgumentHelp("The model file; the server must start from the same file.", valueName: "file"))
    var model: String

    @Option(
        help: ArgumentHelp(
            "The folder of this device's photos: one sub-folder per label of the model, at least one label.",
            valueName: "folder"))
    var photos: String

    @Option(
        help: ArgumentHelp(
            "A folder of photos that are not trained on, to answer evaluations with the accuracy and loss.",
            valueName: "folder"))
    var validation: String?

    @Option(
        help: ArgumentHelp(
            "The file of this device's private key (P-256 or P-384, PEM); created if missing, together with a file FILE.pub of the public "
                + "key. A device that is killed finishes its answer when it joins again with the same key. (default: a new key for each run)",
            valueName: "file"))
    var key: String?

    @Option(help: ArgumentHelp("Clip the change of each round to this Euclidean norm.", valueName: "norm"))
    var clip: Double?

    @Option(
        help: ArgumentHelp(
            "The noise multiplier: adds Gaussian noise with a standard deviation of this value times --clip to each change on this device "
                + "(local differential privacy). Evaluations are then not answered.",
            valueName: "multiplier"))
    var noise: Double?

    @Option(help: "The δ of (ε, δ)-differential privacy, for which ε is printed.")
    var delta = FleetConfiguration().delta

    @OptionGroup var training: HeadTrainingOptions

    @Option(
        help: ArgumentHelp(
            "The memory limit for the features of the photos, and for those of --validation; more is an error. (default: 64MB)",
            valueName: "size"))
    var memory: MemorySize?

    @Option(help: ArgumentHelp("The number of seconds between two requests for messages.", valueName: "seconds"))
    var poll = 2.0

    @Option(
        help: ArgumentHelp(
            "The heartbeat interval; after two intervals without a heartbeat, the server counts the device as offline.",
            valueName: "seconds"))
    var heartbeat = 30.0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, photos] + [validation, key].compactMap { $0 })
        guard poll.isFinite, poll >= 0.1, poll <= 3600 else {
            throw ValidationError("--poll is \(messageText(poll)), expected 0.1 to 3600 seconds.")
        }
        guard (10...1800).contains(heartbeat) else {
            throw ValidationError("--heartbeat is \(messageText(heartbeat)), expected 10 to 1800 seconds.")
        }
        try require(try settings.personalization.problem)
        try checkPrivacy(clip: clip, noise: noise, delta: delta)
        guard let url, ["http", "https"].contains(url.scheme?.lowercased()), url.host()?.isEmpty == false else {
            throw ValidationError(
                "\(shown(server)) is not an http or https URL, expected one such as https://fleet.example:8000.")
        }
    }

    private var url: URL? { URL(string: server) }

    private var settings: FleetConfiguration {
        get throws {
            var settings = FleetConfiguration()
            training.apply(to: &settings.personalization)
            settings.personalization.threads = common.threadCount
            if let memory { settings.personalization.memoryLimit = try memory.byteCount() }
            settings.clip = clip
            settings.noise = noise
            settings.delta = delta
            (settings.pollInterval, settings.heartbeatInterval) = (.seconds(poll), .seconds(heartbeat))
            return settings
        }
    }

    func run() async throws {
        guard let url else { return }
        let classifier = try ImageClassifier(namedModel(model))
        try training.check(classifier.model, model)
        func folder(_ path: String) throws -> ImageFolder {
            try ImageFolder(at: URL(filePath: path), minimumLabels: 1, knownLabels: classifier.labels)
        }
        let client = try FleetClient(
            url, classifier: classifier, photos: folder(photos), validation: try validation.map { try folder($0) },
            key: key.map { URL(filePath: $0) }, configuration: settings)
        for image in client.skipped { Terminal.warn("Skipped: \(image.reason)") }
        let interrupt = Interrupt([SIGINT, SIGTERM, SIGHUP], saves: false)
        interrupt.begin()
        defer { interrupt.end() }
        let isJSON = common.json
        let reporter = FleetReporter(server: client.server, photoCount: client.photoCount, delta: delta, isJSON: isJSON)
        let task = Task { try await client.run { reporter.report($0) } }
        let watch = Task {
            while !Interrupt.isRequested { try await Task.sleep(for: .milliseconds(100)) }
            task.cancel()
        }
        defer { watch.cancel() }
        try await task.value
        Terminal.note("Left the fleet.")
    }
}

/// Prints the events of a client.
private struct FleetReporter: Sendable {
    let server: String
    let photoCount: Int
    let delta: Double
    let isJSON: Bool

    func report(_ event: FleetEvent) {
        if isJSON { try? Terminal.report(EventLine(event)) }
        switch event {
        case .waiting(let reason, let seconds):
            Terminal.warn("\(reason) Trying again in \(String(format: "%.0f", seconds)) s.")
        case .refused(let reason): Terminal.warn("Refused a message. \(reason)")
        case .dropped(let reason): Terminal.warn("Dropped an answer. \(reason)")
        default: if !isJSON { Terminal.note(text(event)) }
        }
    }

    private func text(_ event: FleetEvent) -> String {
        switch event {
        case .joined(let node):
            return
                "Joined \(server) as device \(node) with \(counted(photoCount, "photo")). Ctrl-C leaves the fleet."
        case .resumed: return "Continuing the answer that an earlier process did not finish."
        case .trained(let training):
            let clipped = training.isClipped ? ", clipped" : ""
            let privacy = training.epsilon.map { String(format: " So far, ε = %.4g for δ = %g.", $0, delta) } ?? ""
            return
                "\(round(training.round))trained on \(counted(training.photoCount, "photo")); the change has the norm "
                + String(format: "%.3g", training.norm) + "\(clipped).\(privacy)"
        case .evaluated(let number, let count, let accuracy, let loss):
            return
                "\(round(number))accuracy \(Terminal.percent(accuracy)), loss \(String(format: "%.3f", loss)) on \(counted(count, "validation photo"))."
        case .answeredQuery: return "Answered a query with the number of photos."
        case .waiting(let reason, _), .refused(let reason), .dropped(let reason): return reason
        }
    }

    private func round(_ number: Int?) -> String { number.map { "Round \($0): " } ?? "" }
}

private struct EventLine: Encodable {
    let event: String
    var node: String?
    var round: Int?
    var photos: Int?
    var norm: Double?
    var clipped: Bool?
    var epsilon: Double?
    var accuracy: Double?
    var loss: Double?
    var reason: String?
    var seconds: Double?

    init(_ event: FleetEvent) {
        switch event {
        case .joined(let node):
            self.event = "joined"
            // Beyond the whole numbers of JavaScript.
            self.node = "\(node)"
        case .waiting(let reason, let seconds):
            self.event = "waiting"
            (self.reason, self.seconds) = (reason, seconds)
        case .resumed: self.event = "resumed"
        case .trained(let training):
            self.event = "trained"
            (round, photos, norm) = (training.round, training.photoCount, training.norm)
            (clipped, epsilon) = (training.isClipped, training.epsilon)
        case .evaluated(let round, let count, let accuracy, let loss):
            self.event = "evaluated"
            (self.round, photos, self.accuracy, self.loss) = (round, count, accuracy, loss)
        case .answeredQuery: self.event = "query"
        case .refused(let reason):
            self.event = "refused"
            self.reason = reason
        case .dropped(let reason):
            self.event = "dropped"
            self.reason = reason
        }
    }
}
