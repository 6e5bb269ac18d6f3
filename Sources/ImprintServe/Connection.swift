internal import Foundation
internal import ImprintCore

/// A connection of a client: receives requests one after another, and sends the responses.
struct Connection {
    let number: Int
    let socket: ClientSocket
    let server: InferenceServer

    /// The time limits for the next request, its head, its body and the response.
    private static let limits = (
        idle: Duration.seconds(75), head: Duration.seconds(10), body: Duration.seconds(60),
        response: Duration.seconds(30)
    )
    /// The time to discard the rest of a rejected request.
    static let drainLimit = Duration.seconds(2)

    /// Handles requests until the client or the server ends the connection, then closes the socket.
    func run() {
        defer { server.connections.remove(number, socket) }
        // The bytes that have been received, but not used.
        var received = Data()
        while (try? handleRequest(&received)) == true {}
    }

    /// Receives a request and sends its response.
    /// - Returns: Whether the connection stays open.
    /// - Throws: `ClientSocket.Failure` if the connection has ended.
    private func handleRequest(_ received: inout Data) throws -> Bool {
        if received.isEmpty {
            guard server.connections.enter(.idle, number) else { return false }
            guard try receive(&received, until: .now + Self.limits.idle) else { return false }
        }
        guard server.connections.enter(.head, number) else { return false }
        let start = ContinuousClock.now
        let head: RequestHead
        do {
            head = try receiveHead(&received)
        } catch let error as HTTPError {
            return try reject(error, .other, since: start, omitsBody: false)
        }
        var route = Metrics.Route.other
        do {
            try server.access.check(head)
            let endpoint = try Endpoint(head, modelName: server.options.modelName)
            route = endpoint.route
            let length = try bodyLength(head, endpoint)
            let body = try receiveBody(head, length, &received)
            defer { server.bodies.giveBack(length) }
            guard server.connections.enter(.computing, number) else { return false }
            let response = try respond(head, endpoint, body)
            let keepsAlive = head.keepsAlive && !server.connections.isClosed
            try send(
                response, route, since: start, keepsAlive: keepsAlive, omitsBody: head.method == "HEAD")
            return keepsAlive
        } catch let error as HTTPError {
            return try reject(error, route, since: start, omitsBody: head.method == "HEAD")
        }
    }

    private func respond(_ head: RequestHead, _ endpoint: Endpoint, _ body: Data) throws -> Response {
        do {
            return try server.respond(to: head, endpoint, body) { [socket] in socket.isClosedByClient }
        } catch let error as HTTPError {
            return Response(error)
        } catch let failure as ClientSocket.Failure {
            server.metrics.recordDisconnection()
            throw failure
        } catch {
            return Response(HTTPError(.internalServerError, "\(error)"))
        }
    }

    /// Sends the response to a request that has not been received completely, and ends the connection.
    private func reject(
        _ error: HTTPError, _ route: Metrics.Route, since start: ContinuousClock.Instant, omitsBody: Bool
    ) throws -> Bool {
        try send(Response(error), route, since: start, keepsAlive: false, omitsBody: omitsBody)
        socket.drain(until: .now + Self.drainLimit)
        return false
    }

    private func send(
        _ response: Response, _ route: Metrics.Route, since start: ContinuousClock.Instant, keepsAlive: Bool,
        omitsBody: Bool
    ) throws(ClientSocket.Failure) {
        // Counted first, so that a client that has the response also finds it in the metrics.
        server.metrics.record(route, response, after: .now - start)
        guard server.connections.enter(.transfer, number) else { throw .closed }
        do {
            try socket.write(
                response.encoded(keepsAlive: keepsAlive, omitsBody: omitsBody), until: .now + Self.limits.response)
        } catch {
            server.metrics.recordDisconnection()
            throw error
        }
    }
}

// MARK: Receiving

extension Connection {
    /// Receives some bytes.
    /// - Returns: `false` at the end of the connection.
    private func receive(
        _ received: inout Data, until deadline: ContinuousClock.Instant
    ) throws(ClientSocket.Failure) -> Bool {
        let bytes = try withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 1) {
            buffer throws(ClientSocket.Failure) in
            Data(buffer.prefix(try socket.read(into: buffer, until: deadline)))
        }
        received += bytes
        return !bytes.isEmpty
    }

    /// Receives the head of a request.
    private func receiveHead(_ received: inout Data) throws -> RequestHead {
        let deadline = ContinuousClock.now + Self.limits.head
        let end = Data("\r\n\r\n".utf8)
        while true {
            if let range = received.range(of: end) {
                guard received.distance(from: received.startIndex, to: range.upperBound) <= RequestHead.maximumByteCount
                else { throw Self.tooLarge }
                let head = try RequestHead(parsing: received[..<range.lowerBound])
                received = Data(received[range.upperBound...])
                return head
            }
            guard received.count < RequestHead.maximumByteCount else { throw Self.tooLarge }
            do {
                guard try receive(&received, until: deadline) else { throw ClientSocket.Failure.closed }
            } catch ClientSocket.Failure.timedOut {
                throw HTTPError(.requestTimeout, "the head of the request did not arrive within \(Self.limits.head)")
            }
        }
    }

    private static let tooLarge = HTTPError(
        .fieldsTooLarge, "the head of the request has more than \(RequestHead.maximumByteCount) bytes")

    /// Returns the number of bytes in the body, after checking the limit: only inference has a body.
    private func bodyLength(_ head: RequestHead, _ endpoint: Endpoint) throws(HTTPError) -> Int {
        let length = try head.contentLength
        let limit = endpoint == .infer ? server.options.maximumRequestByteCount : 0
        guard length <= limit else {
            throw HTTPError(.contentTooLarge, "the body has \(length) bytes, expected at most \(limit)")
        }
        return length
    }

    /// Receives the body of a request; on success, its bytes have been taken from the budget.
    private func receiveBody(_ head: RequestHead, _ length: Int, _ received: inout Data) throws -> Data {
        guard length > 0 else { return Data() }
        guard server.connections.enter(.transfer, number) else { throw ClientSocket.Failure.closed }
        let deadline = ContinuousClock.now + Self.limits.body
        if head.expectsContinue {
            try socket.write(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8), until: deadline)
        }
        // The system provides the memory when bytes arrive, so a client cannot occupy memory by announcing a large body.
        guard let memory = malloc(length) else { throw HTTPError.busy("there is not enough memory for the body") }
        let body = UnsafeMutableRawBufferPointer(start: memory, count: length)
        let first = received.prefix(length)
        first.copyBytes(to: body)
        received = Data(received.dropFirst(length))
        var count = 0
        do {
            try take(first.count, after: &count)
            while count < length {
                let size = try socket.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: body[count...]), until: deadline)
                guard size > 0 else { throw ClientSocket.Failure.closed }
                try take(size, after: &count)
            }
        } catch {
            free(memory)
            server.bodies.giveBack(count)
            guard case ClientSocket.Failure.timedOut = error else { throw error }
            throw HTTPError(
                .requestTimeout, "the body has \(counted(count, "byte")) after \(Self.limits.body), expected \(length)")
        }
        return Data(bytesNoCopy: memory, count: length, deallocator: .free)
    }

    /// Takes received bytes of a body from the budget.
    private func take(_ size: Int, after count: inout Int) throws(HTTPError) {
        guard server.bodies.take(size) else {
            throw .busy("the bodies of all requests need too much memory. Try again later")
        }
        count += size
    }
}
