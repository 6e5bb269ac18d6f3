public import Foundation
public import Imprint
internal import ImprintCore
public import ImprintImages
internal import ImprintModel
internal import Synchronization

/// A client of federated learning with Flower: a device that trains on its own photos.
///
/// ```swift
/// let client = try FleetClient(
///     server, classifier: ImageClassifier(contentsOf: model), photos: ImageFolder(at: folder, minimumLabels: 1), key: keyFile)
/// try await client.run { event in print(event) }
/// ```
///
/// The initializer blocks its thread until it has extracted the features of all photos.
///
/// The client speaks the Fleet API of flwr 1.42 or later with a SuperLink. Photos and features never leave the device.
///
/// | message | answer |
/// |---|---|
/// | `train` with H | H + Δ, and the number of photos n |
/// | `evaluate` with H | the accuracy and loss on validation photos, and their number |
/// | `query` | the number of photos, and the digest of the model file |
///
/// H is the head of the server, relative to the model file: weights [channels, labels] and biases [labels]. Δ is the client update, the change
/// that personalization on the device's photos makes to H. Federated averaging computes the next H as Σ n (H + Δ) / Σ n over all clients (McMahan
/// et al., "Communication-efficient learning of deep networks from decentralized data", 2017).
///
/// The client tries again with increasing delays if the server cannot be reached. With a key file, a device that is killed finishes its answer
/// when it joins again.
public final class FleetClient: Sendable {
    /// The number of photos that the device trains on.
    public var photoCount: Int { device.training.photoCount }
    /// The photos that cannot be read.
    public var skipped: [SkippedImage] { device.training.skipped + (device.validation?.skipped ?? []) }
    /// The URL of the server, without user name, password and query.
    public var server: String { connection.url.redacted }
    /// The device's public key in the OpenSSH format, for `flwr supernode register`.
    public var publicKey: String { connection.key.openSSHPublicKey }

    private let device: FleetDevice
    private let connection: FleetConnection
    private let configuration: FleetConfiguration
    /// The state file; nil for a key that is used only once.
    private let stateFile: FleetStateFile?
    private let state: Mutex<FleetState>

    /// Creates a client and extracts the features of its photos.
    ///
    /// The call blocks its thread for the duration of one prediction for each view of each photo (`PersonalizationConfiguration.views`), divided
    /// among `PersonalizationConfiguration.threads`. With many photos, make the call on a thread of its own and not in a task.
    /// - Parameters:
    ///   - server: The http or https URL of the SuperLink.
    ///   - classifier: The model; a personalization is not used.
    ///   - photos: The photos to train on; all of their labels must be labels of the model.
    ///   - validation: Photos that answer evaluations; nil to answer evaluations with an error.
    ///   - key: The file of the device's private key, which is created if it does not exist; nil for a key that is used only once. The state
    ///     of the device is stored beside it.
    ///   - configuration: The settings.
    /// - Throws: `FleetError`, `ImageError` if too many photos cannot be read, `ImprintError` if a setting is out of range, or if the model
    ///   does not have a label or cannot be personalized, `FileError`.
    public convenience init(
        _ server: URL, classifier: ImageClassifier, photos: ImageFolder, validation: ImageFolder? = nil,
        key: URL? = nil, configuration: FleetConfiguration = FleetConfiguration()
    ) throws {
        try self.init(
            server, classifier: classifier, photos: photos, validation: validation, key: key,
            configuration: configuration, transport: HTTPTransport())
    }

    init(
        _ server: URL, classifier: ImageClassifier, photos: ImageFolder, validation: ImageFolder?, key: URL?,
        configuration: FleetConfiguration, transport: any FleetTransport
    ) throws {
        try configuration.check()
        self.configuration = configuration
        let privateKey = try key.map { try FleetKey(creatingIfMissing: $0) } ?? FleetKey()
        stateFile = try key.map { try FleetStateFile(key: $0) }
        let training = try LocalTraining(classifier, photos, configuration: configuration.personalization)
        let validation = try validation.map {
            try LocalTraining(classifier, $0, configuration: configuration.personalization)
        }
        device = try FleetDevice(
            classifier.personalized(with: nil).model, training, validation: validation,
            privacy: UpdatePrivacy(clip: configuration.clip, noise: configuration.noise, delta: configuration.delta))
        // A chunk, or a whole array in 64 bits, with room for names and settings.
        let limit = min(8 * device.valueCount, FleetArray.chunkSize) + (256 << 10)
        connection = try FleetConnection(server, privateKey, transport: transport, limit: limit)
        var state = try stateFile?.read() ?? FleetState()
        if let key, configuration.noise != nil, state.squaredLoss == nil {
            throw FleetError.unlimitedLoss(path: key.path)
        }
        if state.server != server.absoluteString {
            (state.server, state.node, state.pending, state.waiting) = (server.absoluteString, 0, nil, nil)
        }
        self.state = Mutex(state)
    }

    /// Joins the fleet and answers messages until the task is cancelled; then leaves the fleet.
    ///
    /// Call it only once at a time. A cancellation waits for the end of the training in progress, and up to 5 seconds for the server.
    /// - Parameter onEvent: A closure that receives the events, on any thread.
    /// - Throws: `FleetError` if the server rejects the device, `FileError` if the state cannot be written.
    public func run(onEvent: @escaping @Sendable (FleetEvent) -> Void = { _ in }) async throws {
        do {
            try await join(onEvent)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.sendHeartbeats() }
                group.addTask { try await self.answerMessages(onEvent) }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch is CancellationError {
            await leave()
        } catch {
            await leave()
            throw error
        }
    }

    // MARK: Joining and leaving

    private var node: UInt64 { state.withLock(\.node) }

    private var heartbeatSeconds: Double { configuration.heartbeatInterval / .seconds(1) }

    /// Registers the key if necessary, and activates the node.
    private func join(_ onEvent: @Sendable (FleetEvent) -> Void) async throws {
        let node = try await retrying(onEvent) { try await self.activate() }
        try change { $0.node = node }
        onEvent(.joined(node: node))
    }

    private func activate() async throws -> UInt64 {
        typealias Code = FleetConnection.ErrorCode
        do {
            return try await connection.activate(heartbeatInterval: heartbeatSeconds)
        } catch FleetError.rejected(_, _, Code.activationFailed, _) {
            // The key is unknown, or the server still counts an earlier process of this device as online.
        }
        let known = node
        if known != 0, try await isKnown(known) { return known }
        do {
            try await connection.register()
        } catch FleetError.rejected(let url, _, Code.registrationDisabled, _) {
            throw FleetError.unknownKey(url: url, publicKey: publicKey)
        } catch FleetError.rejected(let url, _, Code.publicKeyInUse, _) {
            throw FleetError.unavailable(
                url: url,
                reason: "it still counts an earlier process with this key as online, until its heartbeats expire")
        }
        return try await connection.activate(heartbeatInterval: heartbeatSeconds)
    }

    /// Whether the server knows the node under this key.
    private func isKnown(_ node: UInt64) async throws -> Bool {
        do {
            return try await connection.heartbeat(node: node, interval: heartbeatSeconds)
        } catch FleetError.rejectedSignature {
            return false
        }
    }

    /// The maximum time to leave the fleet, so that a cancelled run does not wait for a server that does not answer.
    private static let leaveLimit = Duration.seconds(5)

    /// Tells the server that the device is offline; the server also notices without it.
    private func leave() async {
        let node = node
        guard node != 0 else { return }
        let isTemporary = stateFile == nil
        let connection = connection
        // New tasks, because this one is cancelled.
        let requests = Task {
            try? await connection.deactivate(node: node)
            if isTemporary { try? await connection.unregister(node: node) }
        }
        let limit = Task {
            try? await Task.sleep(for: Self.leaveLimit)
            requests.cancel()
        }
        await requests.value
        limit.cancel()
    }

    // MARK: Loops

    private func sendHeartbeats() async throws {
        while true {
            // A random interval spreads the requests of many devices.
            try await Task.sleep(for: configuration.heartbeatInterval * Double.random(in: 0.7...0.9))
            // The other loop reports problems of the connection and joins again if the server forgot the node.
            _ = try? await connection.heartbeat(node: node, interval: heartbeatSeconds)
        }
    }

    private func answerMessages(_ onEvent: @escaping @Sendable (FleetEvent) -> Void) async throws {
        if isAnswering { onEvent(.resumed) }
        var rejections = 0
        while true {
            do {
                while isAnswering {
                    try Task.checkCancellation()
                    try await answerPending(onEvent)
                    rejections = 0
                }
                try Task.checkCancellation()
                let messages = try await retrying(onEvent) { try await self.connection.pullMessages(node: self.node) }
                rejections = 0
                if messages.isEmpty {
                    try await Task.sleep(for: configuration.pollInterval)
                } else {
                    // Before the first answer, because an error must not lose the others.
                    try change { $0.add(messages) }
                }
            } catch FleetError.rejectedSignature(let url) {
                // A server that was restarted does not know the node any more.
                rejections += 1
                guard rejections < 3 else { throw FleetError.rejectedSignature(url: url) }
                try await join(onEvent)
            } catch let error as FleetError where error.isAboutMessage {
                // Without its metadata, a message cannot be answered.
                onEvent(.refused(reason: error.description))
                try await Task.sleep(for: configuration.pollInterval)
            }
        }
    }

    private var isAnswering: Bool { state.withLock { $0.pending != nil } }

    // MARK: Answers

    /// Answers the message in progress, and continues with the next one.
    private func answerPending(_ onEvent: @escaping @Sendable (FleetEvent) -> Void) async throws {
        do {
            guard let pending = state.withLock(\.pending) else { return }
            let message = try pending.message()
            let reply =
                if let stored = pending.reply { try stored.message() } else {
                    try await self.reply(to: message, onEvent)
                }
            try await push(reply, to: message, onEvent)
        } catch let error as FleetError where error.endsMessage {
            onEvent(.dropped(reason: error.description))
        }
        try change { $0.startNext() }
    }

    /// Computes and stores the reply to a message.
    private func reply(
        to message: IncomingMessage, _ onEvent: @escaping @Sendable (FleetEvent) -> Void
    ) async throws -> OutgoingMessage {
        let node = node
        func metadata() -> MessageMetadata { message.metadata.reply(from: node, at: Date.now.timeIntervalSince1970) }
        let squaredLoss = state.withLock(\.squaredLoss)
        do {
            let content = try await content(of: message, onEvent)
            // On another thread, so that heartbeats continue.
            let answer = try await onDedicatedThread { [device] in
                try device.answer(message.metadata.type, content, squaredLoss: squaredLoss)
            }
            let reply = OutgoingMessage(metadata(), answer.content)
            try change { state in
                state.pending?.reply = FleetState.Reply(reply)
                if answer.usesPhotos { state.squaredLoss = self.device.privacy.addingAnswer(to: state.squaredLoss) }
            }
            onEvent(answer.event)
            return reply
        } catch let error as FleetError where error.isAboutMessage {
            // These errors describe only the message and the model.
            onEvent(.refused(reason: error.description))
            return OutgoingMessage(metadata(), MessageError(reason: error.description))
        } catch  where !(error is FleetError || error is FileError || error is CancellationError) {
            // The error may describe the photos of the device, so the server does not get its message.
            onEvent(.refused(reason: "\(error)"))
            return OutgoingMessage(metadata(), MessageError(reason: "The training on the device failed."))
        }
    }

    /// Pulls the objects of a message.
    private func content(
        of message: IncomingMessage, _ onEvent: @escaping @Sendable (FleetEvent) -> Void
    ) async throws -> RecordDictionary {
        guard let root = message.tree.children.first, message.tree.children.count == 1 else {
            throw FleetError.malformed(reason: "the message has \(message.tree.children.count) contents, expected one")
        }
        var store = ObjectStore()
        var byteCount = 0
        let limit = 8 * device.valueCount + (256 << 10)
        for id in Set(root.objectIDs).sorted() {
            let bytes = try await pull(id, of: message, onEvent)
            byteCount += bytes.count
            guard byteCount <= limit else { throw FleetError.oversized(url: connection.url.redacted, limit: limit) }
            store.insert(bytes, id: id)
        }
        return try RecordDictionary(root, in: store, maximumValues: device.valueCount)
    }

    /// Pulls one object, and waits until the server has it.
    private func pull(
        _ id: String, of message: IncomingMessage, _ onEvent: @escaping @Sendable (FleetEvent) -> Void
    ) async throws -> [UInt8] {
        try await retrying(onEvent) {
            try self.checkValidity(of: message)
            let object = try await self.connection.pullObject(id, node: self.node, run: message.metadata.runID)
            guard object.isFound else {
                throw FleetError.rejected(
                    url: self.connection.url.redacted, status: 404, code: nil, detail: "the object \(id) does not exist"
                )
            }
            guard object.isAvailable else {
                throw FleetError.unavailable(
                    url: self.connection.url.redacted, reason: "the server does not have the whole message yet")
            }
            return object.content
        }
    }

    /// Pushes a reply and its objects; children first.
    private func push(
        _ reply: OutgoingMessage, to message: IncomingMessage, _ onEvent: @escaping @Sendable (FleetEvent) -> Void
    ) async throws {
        let run = message.metadata.runID
        try await retrying(onEvent) {
            try self.checkValidity(of: message)
            let pushed = try await self.connection.push(reply, node: self.node)
            for id in reply.tree.objectIDs where pushed.missing.contains(id) {
                guard let content = reply.objects.contents[id] else { continue }
                let isStored = try await self.connection.pushObject(
                    id, content, node: self.node, run: run, session: pushed.sessionID)
                guard isStored else {
                    throw FleetError.unavailable(
                        url: self.connection.url.redacted, reason: "it did not store a part of the answer")
                }
            }
        }
        // Only now, so that a device that is killed can pull the message again.
        try await retrying(onEvent) {
            try await self.connection.confirm(message.metadata.messageID, node: self.node, run: run)
        }
    }

    /// Checks that the server still waits for the answer to a message.
    private func checkValidity(of message: IncomingMessage) throws(FleetError) {
        guard Date.now.timeIntervalSince1970 < message.metadata.createdAt + message.metadata.timeToLive else {
            throw .rejected(
                url: connection.url.redacted, status: 410, code: nil,
                detail: "the message expired after \(message.metadata.timeToLive) s")
        }
    }

    // MARK: Helpers

    /// Changes the state, and stores it if the key has a file.
    private func change(_ body: (inout FleetState) -> Void) throws {
        try state.withLock { state in
            body(&state)
            try stateFile?.write(state)
        }
    }

    /// Runs an operation until it does not fail because of the connection, with exponentially increasing delays.
    private func retrying<Value: Sendable>(
        _ onEvent: @Sendable (FleetEvent) -> Void, _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        var delay = 1.0
        while true {
            do {
                return try await body()
            } catch let error as FleetError where error.isTransient {
                let seconds = min(delay, configuration.maximumBackoff / .seconds(1)) * Double.random(in: 0.8...1.2)
                onEvent(.waiting(reason: error.description, seconds: seconds))
                try await Task.sleep(for: .seconds(seconds))
                delay *= 2
            }
        }
    }
}

extension FleetError {
    /// Whether the error describes a message that this device does not answer.
    fileprivate var isAboutMessage: Bool {
        switch self {
        case .malformed, .wrongModel, .unsupported, .oversized: true
        default: false
        }
    }

    /// Whether the server does not accept an answer to the message any more, or its response to the answer cannot be used.
    fileprivate var endsMessage: Bool {
        switch self {
        case .rejected, .malformed, .oversized: !isTransient
        default: false
        }
    }
}
