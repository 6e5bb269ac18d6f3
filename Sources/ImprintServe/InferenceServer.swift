internal import Foundation
package import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import Synchronization

/// An HTTP server that runs a model, with the Open Inference Protocol (version 2).
///
/// Each connection has a thread, which waits for the client with time limits, and the thread of `BatchQueue` runs the network. The threads of the
/// classifier share the work of a batch.
package final class InferenceServer: Sendable {
    /// The address of the server.
    package let url: String
    let options: ServeOptions
    let interface: ModelInterface
    let connections: ConnectionTable
    let metrics = Metrics()
    let access: AccessControl
    let bodies: ByteBudget
    private let classifier: ImageClassifier
    private let queue: BatchQueue
    private let listener: Listener
    private let isStopping = Atomic(false)
    private let acceptingHasEnded = DispatchSemaphore(value: 0)
    /// Limits the JSON texts that are decoded at the same time, because decoding needs many times their size.
    private let jsonDecoders = DispatchSemaphore(value: 2)
    /// Limits the connections beyond `ServeOptions.maximumConnectionCount` that wait for their clients to receive the response.
    private let rejections = DispatchSemaphore(value: 16)
    /// The number of open files beyond those of `ServeOptions.maximumConnectionCount`: the model, rejected connections and the system.
    private static let reservedFileCount = 64

    /// Starts a server, which runs until `stop(within:)`.
    /// - Parameters:
    ///   - classifier: The model, with the threads that share the work of a batch.
    ///   - options: The options.
    /// - Throws: `ServeError` if the address is not available or needs a token, or if the process cannot open enough files, `NetworkError` if
    ///   there is not enough memory for a batch, the error of a prediction if the model cannot process images.
    package init(_ classifier: ImageClassifier, options: ServeOptions) throws {
        guard options.token != nil || NetworkAddress.isLoopback(options.host) else {
            throw ServeError.missingToken(host: options.host)
        }
        // If the process had no free file descriptors, clients that send nothing would keep others out.
        let fileCount = options.maximumConnectionCount + Self.reservedFileCount
        if let limit = FileLimit.raise(to: fileCount) {
            throw ServeError.tooManyConnections(
                count: options.maximumConnectionCount, files: fileCount, limit: limit)
        }
        self.classifier = classifier
        self.options = options
        interface = ModelInterface(classifier, name: options.modelName)
        let predictor = try classifier.batchPredictor(maximumBatchSize: options.maximumBatchSize)
        try Self.warmUp(predictor, classifier, options)
        listener = try Listener(host: options.host, port: options.port)
        access = AccessControl(token: options.token, host: options.host, port: listener.port)
        url = "http://\(options.host.contains(":") ? "[\(options.host)]" : options.host):\(listener.port)"
        connections = ConnectionTable(
            limit: options.maximumConnectionCount, slowTransferDuration: options.slowTransferDuration)
        bodies = ByteBudget(8 * options.maximumRequestByteCount)
        queue = BatchQueue(predictor, options: options, metrics: metrics)
        let thread = Thread { [self] in acceptConnections() }
        thread.name = "imprint accept"
        thread.start()
    }

    /// Runs the model once, so that the first request does not wait for the preparation of weights, and a broken model is an error now.
    private static func warmUp(
        _ predictor: any BatchPredictor, _ classifier: ImageClassifier, _ options: ServeOptions
    ) throws {
        let input = classifier.model.network.input
        let image = RasterImage(width: input.width, height: input.height, filledWith: 128)
        let count = classifier.acceptsValues ? options.maximumBatchSize : 1
        let results = predictor.predict(Array(repeating: .image(.image(image)), count: count))
        _ = try results[0].get()
    }

    /// Accepts connections until the server stops, and starts a thread for each.
    private func acceptConnections() {
        while !isStopping.load(ordering: .acquiring) {
            do {
                if let socket = try listener.accept() { start(socket) }
            } catch {
                // The evicted connection frees a file descriptor.
                if Listener.lacksDescriptors(error), connections.evict() { metrics.recordEviction() }
                Thread.sleep(forTimeInterval: 0.05)
            }
        }
        listener.close()
        acceptingHasEnded.signal()
    }

    private func start(_ socket: ClientSocket) {
        guard case .admitted(let number, let evicts) = connections.add(socket) else {
            return reject(socket)
        }
        if evicts { metrics.recordEviction() }
        let thread = Thread { [self] in Connection(number: number, socket: socket, server: self).run() }
        // Decoding nested JSON uses the stack.
        thread.stackSize = 2 << 20
        thread.name = "imprint client"
        thread.start()
    }

    /// Sends the response to a connection beyond the maximum number, and closes the connection.
    private func reject(_ socket: ClientSocket) {
        let error = HTTPError.busy("\(options.maximumConnectionCount) connections are in use. Try again later")
        // A short response fits into the buffer of the socket, so this does not wait.
        try? socket.write(Response(error).encoded(keepsAlive: false), until: .now)
        guard rejections.wait(timeout: .now()) == .success else { return socket.close() }
        let thread = Thread { [self] in
            socket.drain(until: .now + Connection.drainLimit)
            socket.close()
            rejections.signal()
        }
        thread.name = "imprint reject"
        thread.start()
    }

    /// Stops the server: rejects new connections, finishes the requests that have started, and releases the port.
    /// - Parameter limit: The time after which the server ends the remaining connections.
    package func stop(within limit: Duration = .seconds(30)) {
        let deadline = ContinuousClock.now + limit
        isStopping.store(true, ordering: .releasing)
        acceptingHasEnded.wait()
        // Signals again, because other callers of this method wait for the same semaphore.
        acceptingHasEnded.signal()
        connections.close()
        while connections.count > 0 && .now < deadline { Thread.sleep(forTimeInterval: 0.01) }
        connections.endAll()
        queue.close()
    }
}

// MARK: Responses

extension InferenceServer {
    /// Returns the response to a request that has access.
    /// - Parameter isAbandoned: Whether the client has closed the connection.
    func respond(
        to head: RequestHead, _ endpoint: Endpoint, _ body: Data, isAbandoned: @escaping @Sendable () -> Bool
    ) throws -> Response {
        switch endpoint {
        case .live: return try Response(json: ["live": true])
        case .ready, .modelReady:
            let isReady = !isStopping.load(ordering: .acquiring)
            return try Response(isReady ? .ok : .serviceUnavailable, json: ["ready": isReady])
        case .server: return try Response(json: ServerMetadata(version: options.version))
        case .models: return try Response(json: ["models": [interface.name]])
        case .model: return try Response(json: interface.metadata)
        case .metrics:
            return Response(
                type: "text/plain; version=0.0.4; charset=utf-8",
                body: Data(metrics.text(connectionCount: connections.count).utf8))
        case .infer: return try infer(head, body, isAbandoned)
        }
    }

    private struct ServerMetadata: Encodable {
        let name = "imprint"
        let version: String
        let extensions = ["binary_tensor_data", "classification"]
    }

    private func infer(
        _ head: RequestHead, _ body: Data, _ isAbandoned: @escaping @Sendable () -> Bool
    ) throws -> Response {
        let request = try request(head, body)
        let results = try queue.predict(request.images, isAbandoned: isAbandoned)
        var predictions: [Prediction] = []
        for (index, result) in results.enumerated() {
            do {
                predictions.append(try result.get())
            } catch {
                throw Self.failure(error, index, of: results.count)
            }
        }
        return try InferenceResponse(request, predictions, interface, reachesThreshold: classifier.reachesThreshold)
            .response()
    }

    /// The maximum number of bytes in a JSON text; larger tensors are sent as binary data.
    private static let maximumJSONByteCount = 8 << 20
    /// JSON texts up to this size are decoded without waiting for others.
    private static let smallJSONByteCount = 64 << 10

    private func request(_ head: RequestHead, _ body: Data) throws(HTTPError) -> InferenceRequest {
        guard head.fields["content-encoding"] ?? "identity" == "identity" else {
            throw HTTPError(.unsupportedMediaType, "the body is compressed. Send it without Content-Encoding")
        }
        if head.mediaType?.hasPrefix("image/") == true {
            guard !body.isEmpty else { throw HTTPError(.badRequest, "the body is empty, expected a picture") }
            return InferenceRequest(picture: body, interface)
        }
        let jsonByteCount = try InferenceRequest.jsonByteCount(head)
        if jsonByteCount == nil, let type = ImageFile.mediaType(of: body) {
            let found = head.mediaType.map { "its Content-Type is \(String($0.prefix(60)).debugDescription)" }
            throw HTTPError(
                .unsupportedMediaType,
                "the body is a picture, but \(found ?? "it has no Content-Type"). Send the header field Content-Type: \(type)"
            )
        }
        let size = jsonByteCount ?? body.count
        guard size <= Self.maximumJSONByteCount else {
            throw HTTPError(
                .contentTooLarge,
                "the JSON has \(size) bytes, expected at most \(Self.maximumJSONByteCount). Send the tensor as binary data"
            )
        }
        guard size > Self.smallJSONByteCount else {
            return try InferenceRequest(
                body, jsonByteCount: jsonByteCount, interface, maximumImageCount: options.queueCapacity)
        }
        guard jsonDecoders.wait(timeout: .now() + 10) == .success else {
            throw .busy("the server is decoding other JSON texts. Try again later")
        }
        defer { jsonDecoders.signal() }
        return try InferenceRequest(
            body, jsonByteCount: jsonByteCount, interface, maximumImageCount: options.queueCapacity)
    }

    /// Returns the error of an image that cannot be processed.
    /// - Parameter index: The index of the image, from 0.
    private static func failure(_ error: any Error, _ index: Int, of count: Int) -> any Error {
        let prefix = count == 1 ? "" : "image \(index + 1) of \(count): "
        switch error {
        case ImageError.outOfMemory, ImprintError.outOfMemory: return HTTPError.busy("\(prefix)\(error)")
        case is ImageError, is ImprintError: return HTTPError(.unprocessableContent, "\(prefix)\(error)")
        default: return error
        }
    }
}

/// A limit of the memory for the bodies of all requests.
final class ByteBudget: Sendable {
    private let rest: Atomic<Int>

    init(_ byteCount: Int) { rest = Atomic(byteCount) }

    /// Takes bytes from the budget.
    /// - Returns: `false` if there are not enough.
    func take(_ count: Int) -> Bool {
        if rest.subtract(count, ordering: .relaxed).newValue >= 0 { return true }
        giveBack(count)
        return false
    }

    /// Returns bytes to the budget.
    func giveBack(_ count: Int) { rest.add(count, ordering: .relaxed) }
}
